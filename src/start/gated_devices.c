/* SPDX-License-Identifier: Apache-2.0 */
/* gated_devices: discovers and plans the gated devices alone. */
#include "start/gated_devices.h"

#include <string.h>

#include "apply/oci/oci_edits.h"
#include "apply/oci/plan_to_edits.h"
#include "base/strings.h"
#include "host/discover.h"
#include "plan/planner.h"
#include "plan/spec_hooks.h"
#include "start/give.h"

static uint32_t gates_of(const struct graft_container *container)
{
	uint32_t gates = 0;

	for (unsigned int i = 0; i < GRAFT_GATE_MAX; i++) {
		if (container->gates[i])
			gates |= 1u << i;
	}
	return gates;
}

static int discover_gates(const struct graft_start *create, uint32_t gates, struct graft_inventory **ret_inventory,
			  struct graft_error *err)
{
	struct graft_host_options options = graft_start_host_options(create);

	options.gates = gates;
	options.log = create->log;
	return graft_host_discover(&options, 0, ret_inventory, err);
}

/* The planner plans a whole container. This one gets its GPUs elsewhere, so drop the rest. */
static void keep_gates(struct graft_plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_edits; i++) {
		if (graft_starts_with(plan->edits[i].rule, "gate-"))
			plan->edits[n++] = plan->edits[i];
	}
	plan->n_edits = n;
	plan->n_grants = 0;
}

static int make_gates_plan(const struct graft_inventory *inventory, uint32_t gates, struct graft_plan **ret_plan,
			   struct graft_error *err)
{
	const struct graft_policy policy = { .style = GRAFT_STYLE_OCI };
	struct graft_selection selection = { .n_gpus = 0 };
	struct graft_request *request = graft_request_new();
	int rc;

	if (!request)
		return graft_fail_memory(err);
	request->gates = gates;
	rc = graft_plan_make(inventory, request, &policy, &selection, ret_plan, err);
	graft_request_free(request);
	if (rc == 0)
		keep_gates(*ret_plan);
	return rc;
}

int graft_start_plan_gates(const struct graft_start *create, struct graft_plan **ret_plan, struct graft_error *err)
{
	uint32_t gates = gates_of(create->container);
	struct graft_inventory *inventory = NULL;
	int rc;

	*ret_plan = NULL;
	if (gates == 0)
		return 0;
	rc = discover_gates(create, gates, &inventory, err);
	if (rc == 0)
		rc = make_gates_plan(inventory, gates, ret_plan, err);
	(void)graft_inventory_free(inventory);
	return rc;
}

int graft_start_give_gates(struct graft_start *create, struct graft_error *err)
{
	struct graft_plan *plan;
	int rc = graft_start_plan_gates(create, &plan, err);

	if (rc == 0 && plan && plan->n_edits > 0)
		rc = graft_start_give(create, plan, NULL, create->log, err);
	(void)graft_plan_free(plan);
	return rc;
}

/* --- compatibility libraries in mode legacy --- */

static bool wants_compat(const struct graft_start *create)
{
	const char *mode = create->config->runtime.cuda_compat_mode;

	return mode && strcmp(mode, "hook") == 0 && !create->config->features.disable_cuda_compat_lib_hook;
}

static int make_version_argument(const struct graft_start *create, const char **ret_argument, struct graft_error *err)
{
	struct graft_inventory *inventory = NULL;
	int rc = 0;

	if (discover_gates(create, 0, &inventory, err) < 0)
		return -1;
	*ret_argument = NULL;
	if (!inventory->driver_version.value)
		rc = graft_fail(err, GRAFT_NO_DRIVER, 0,
				"failed to determine driver version, which cuda-compat-mode = \"hook\" needs");
	else
		*ret_argument = graft_arena_printf(create->arena, "--host-driver-version=%s",
						   inventory->driver_version.value);
	(void)graft_inventory_free(inventory);
	return rc == 0 && !*ret_argument ? graft_fail_memory(err) : rc;
}

int graft_start_give_compat(struct graft_start *create, struct graft_error *err)
{
	struct graft_cdi_edits edits = { .n_hooks = 0 };
	struct graft_cdi_hook *compat;
	const char *version;

	if (!wants_compat(create))
		return 0;
	if (make_version_argument(create, &version, err) < 0)
		return -1;
	compat = oci_begin_hook(create->cdi_hook_path, "enable-cuda-compat", create->arena, &edits);
	if (!compat || !graft_arena_push_string(create->arena, &compat->args, &compat->n_args, version) ||
	    !oci_begin_hook(create->cdi_hook_path, "update-ldcache", create->arena, &edits))
		return graft_fail_memory(err);
	if (graft_join_hooks(create->cdi_hook_path, create->hook_root, create->arena, &edits, err) < 0)
		return -1;
	return graft_oci_apply_edits(create->document, &edits, err);
}
