/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_limits: apply-cuda-memory-limits, which newer specifications name once for each GPU, at
 * createRuntime (SPEC ctk-and-cdi 2.7). Only the driver's library, running as root, can set these
 * limits, so they are not set: here the driver's code never runs with privileges
 * (docs/decisions/0005-nvml.md). A container that asks for them gets a warning in its log.
 */
#include "base/cleanup.h"
#include "base/option_rows.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "plan/hooks_plan.h"

static void tell_not_limited(const struct cdi_hook *hook, const struct graft_oci_spec *spec, const char *variable)
{
	const char *value = graft_oci_spec_env(spec, variable);

	if (value && value[0] != '\0')
		graft_warn(&hook->log,
			   "%s=%.64s has no effect on GPU %.64s: limits of GPU memory are not supported, and the "
			   "container may use all of it",
			   variable, value, hook->gpu_id && hook->gpu_id[0] != '\0' ? hook->gpu_id : "(unnamed)");
}

static int apply_cuda_memory_limits(void *target, struct graft_error *err)
{
	struct cdi_hook *hook = target;
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_oci_spec spec;

	if (cdi_hook_read_spec(hook, &document, &spec, err) < 0)
		return cdi_hook_fail(hook, err, "failed to apply CUDA memory limits");
	tell_not_limited(hook, &spec, GRAFT_MEMORY_LIMIT);
	tell_not_limited(hook, &spec, GRAFT_MEMORY_REQUEST);
	return 0;
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct cdi_hook, member)
static const struct graft_option options[] = {
	{ .name = "driver-root", TEXT, AT(driver_root), .value_name = "DIR", .help = "Root of the driver's files" },
	{ .name = "gpu-id", TEXT, AT(gpu_id), .value_name = "ID", .help = "GPU to limit" },
	CDI_HOOK_CONTAINER_SPEC(true),
};
/* clang-format on */

const struct graft_command cdi_hook_apply_cuda_memory_limits = {
	CDI_HOOK_COMMAND,
	.name = GRAFT_MEMORY_HOOK,
	.summary = "Warn that GPU memory limits of a container have no effect",
	GRAFT_OPTIONS(options),
	.work = apply_cuda_memory_limits,
};
