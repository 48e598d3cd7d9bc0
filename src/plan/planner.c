/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner: the order of the rules. For an existing container it is the order of the existing stack
 * (SPEC libnvidia-container 9.4 to 9.7, 3.5), which callers that read a container's mounts know;
 * the loader's cache comes last, because it describes the result.
 */
#include "plan/planner.h"

#include "plan/plan.h"
#include "plan/rules.h"

/*
 * If the platform's driver does not list GPUs one by one, there is nothing to select from (SPEC
 * libnvidia-container 3.5 step 7). Then "all" and index 0 mean the only GPU, and no other word
 * does.
 */
static bool wants_only_gpu(const struct graft_inventory *inventory, const struct graft_request *request)
{
	if (inventory->platform != GRAFT_PLATFORM_WSL2 && inventory->platform != GRAFT_PLATFORM_TEGRA)
		return false;
	for (size_t i = 0; i < request->n_devices; i++) {
		const struct graft_device_word *word = &request->devices[i];

		if (word->kind == GRAFT_DEVICE_ALL || (word->kind == GRAFT_DEVICE_INDEX && word->index == 0))
			return true;
	}
	return false;
}

/*
 * Nodes of single devices, then those of all, just as CDI devices come before what they have in
 * common (SPEC runtime-and-hook 7.2).
 */
static int run_node_rules(struct graft_planner *planner, struct graft_error *err)
{
	if (planner->request->management)
		return graft_rule_management(planner, err);
	if (graft_rule_gpus(planner, err) < 0 || graft_rule_mig(planner, err) < 0)
		return -1;
	return graft_rule_nodes(planner, err);
}

static int run_oci_rules(struct graft_planner *planner, struct graft_error *err)
{
	if (run_node_rules(planner, err) < 0 || graft_rule_gates(planner, err) < 0 || graft_rule_imex(planner, err) < 0)
		return -1;
	graft_rule_binaries(planner);
	graft_rule_libraries(planner);
	graft_rule_extra_files(planner);
	graft_rule_firmware(planner);
	graft_rule_ipcs(planner);
	graft_rule_environment(planner);
	graft_rule_links(planner);
	graft_rule_application_profile(planner);
	graft_rule_params(planner);
	graft_rule_loader_cache(planner);
	return 0;
}

static int run_rules(struct graft_planner *planner, struct graft_error *err)
{
	graft_rule_procfs_view(planner);
	graft_rule_application_profile(planner);
	graft_rule_binaries(planner);
	graft_rule_libraries(planner);
	graft_rule_links(planner);
	graft_rule_extra_files(planner);
	graft_rule_firmware(planner);
	graft_rule_ipcs(planner);
	if (graft_rule_nodes(planner, err) < 0 || graft_rule_gpus(planner, err) < 0 ||
	    graft_rule_mig(planner, err) < 0 || graft_rule_imex(planner, err) < 0)
		return -1;
	graft_rule_loader_cache(planner);
	return 0;
}

/* What an image or a volume does not permit is reported before it is attempted. */
static int leave_out_foreign_edits(struct graft_plan *plan, const struct graft_policy *policy, struct graft_error *err)
{
	const struct graft_plan *rest = graft_plan_without(plan, policy->image.foreign_dirs,
							   policy->image.n_foreign_dirs, plan->arena);

	if (!rest)
		return graft_fail_memory(err);
	*plan = *rest;
	return 0;
}

int graft_plan_make(const struct graft_inventory *inventory, const struct graft_request *request,
		    const struct graft_policy *policy, const struct graft_selection *selection,
		    struct graft_plan **ret_plan, struct graft_error *err)
{
	struct graft_planner planner = {
		.inventory = inventory, .request = request, .policy = policy, .selection = selection
	};
	int result;

	if (inventory->platform == GRAFT_PLATFORM_NONE)
		return graft_fail(err, GRAFT_NO_DRIVER, 0, "nvml error: driver not loaded");
	planner.plan = graft_plan_new();
	if (!planner.plan)
		return graft_fail_memory(err);
	planner.plan->driver_version = graft_plan_copy(&planner, inventory->driver_version.value);
	planner.plan->simulated = inventory->simulated;
	planner.wants_gpu = selection->n_gpus > 0 || wants_only_gpu(inventory, request);
	planner.oci = policy->style == GRAFT_STYLE_OCI;
	graft_plan_targets(&planner);
	graft_plan_choose_libraries(&planner);
	graft_rule_missing(&planner);
	result = planner.oci ? run_oci_rules(&planner, err) : run_rules(&planner, err);
	if (result == 0 && graft_arena_failed(planner.plan->arena))
		result = graft_fail_memory(err);
	if (result == 0)
		result = leave_out_foreign_edits(planner.plan, policy, err);
	if (result < 0) {
		(void)graft_plan_free(planner.plan);
		return -1;
	}
	*ret_plan = planner.plan;
	return 0;
}
