/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_limits: apply-cuda-memory-limits, which newer specifications name once for each GPU, at
 * createRuntime (SPEC ctk-and-cdi 2.7). Only the driver's library, running as root, can set these
 * limits, so they are not set: here the driver's code never runs with privileges
 * (docs/decisions/0005-nvml.md). A container that asks for them gets a warning in its log.
 */
#include "base/cleanup.h"
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

static int run_apply_cuda_memory_limits(void *context, int argc, char **argv)
{
	struct cdi_hook *hook = context;
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_oci_spec spec;

	(void)argc;
	(void)argv;
	if (cdi_hook_read_spec(hook, &document, &spec, &err) < 0)
		return cdi_hook_fail(hook, &err, "failed to apply CUDA memory limits");
	tell_not_limited(hook, &spec, GRAFT_MEMORY_LIMIT);
	tell_not_limited(hook, &spec, GRAFT_MEMORY_REQUEST);
	return 0;
}

#define STRING(member) \
	.argument = GRAFT_OPTION_REQUIRED, .parse = graft_option_set_string, .offset = offsetof(struct cdi_hook, member)
static const struct graft_option options[] = {
	{ .name = "driver-root", STRING(driver_root), .value_name = "DIR", .help = "Root of the driver's files" },
	{ .name = "gpu-id", STRING(gpu_id), .value_name = "ID", .help = "GPU to limit" },
	CDI_HOOK_CONTAINER_SPEC(true),
};

const struct graft_command cdi_hook_apply_cuda_memory_limits = {
	.name = GRAFT_MEMORY_HOOK,
	.arguments = "",
	.summary = "Warn that GPU memory limits of a container have no effect",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = -1,
	.go_style = true,
	.run = run_apply_cuda_memory_limits,
};
