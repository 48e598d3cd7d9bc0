/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_nodes: stops the driver's libraries in the container from creating device nodes (SPEC
 * ctk-and-cdi 2.5), by covering the driver's parameters in procfs with a copy that forbids it.
 */
#include "base/cleanup.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "host/discover.h"
#include "plan/hook_edits.h"

static int fill_device_node_params(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
				   struct graft_error *err)
{
	const char *text;

	(void)hook;
	(void)target;
	if (graft_params_for_container(plan->arena, &text, err) < 0)
		return -1;
	if (!text)
		return 1;
	return graft_hook_add_params(plan, text) ? 0 : graft_fail_memory(err);
}

static int disable_device_node_modification(void *hook, struct graft_error *err)
{
	static const struct cdi_hook_job job = { .fill = fill_device_node_params,
						 .failure = "failed to disable device node modification" };

	return cdi_hook_do(hook, &job, err);
}

static const struct graft_option options[] = { CDI_HOOK_CONTAINER_SPEC(true) };

const struct graft_command cdi_hook_disable_device_node_modification = {
	CDI_HOOK_COMMAND,
	.name = "disable-device-node-modification",
	.summary = "Keep the driver's libraries in the container from creating device nodes",
	GRAFT_OPTIONS(options),
	.work = disable_device_node_modification,
};
