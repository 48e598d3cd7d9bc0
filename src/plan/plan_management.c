/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_management: every device node of the driver, for containers that manage all GPUs of a host
 * (SPEC ctk-and-cdi 4.8).
 */
#include "plan/rules.h"

int graft_rule_management(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_inventory *inventory = planner->inventory;

	/* The nodes belong to the device, so they are not part of what devices have in common. */
	for (size_t i = 0; i < inventory->n_management_nodes && !planner->policy->shared; i++) {
		if (graft_plan_node(planner, &inventory->management_nodes[i], "management-node",
				    "a node of the driver, all of which are managed", err) < 0)
			return -1;
	}
	return 0;
}
