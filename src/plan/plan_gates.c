/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_gates: what a container requested one by one, in addition to GPUs (SPEC runtime-and-hook
 * 7.10). A host without it is not an error, because images request it wherever they run.
 */
#include "plan/rules.h"

static const char why[] = "was asked for by name (NVIDIA_GDS, NVIDIA_MOFED, NVIDIA_GDRCOPY, NVIDIA_NVSWITCH)";

static bool is_open(const struct graft_planner *planner, enum graft_gate gate)
{
	return (planner->request->gates & 1u << gate) != 0;
}

static void refuse_empty(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;
	uint32_t found = 0;

	for (size_t i = 0; i < inventory->n_gate_nodes; i++)
		found |= 1u << inventory->gate_nodes[i].gate;
	for (unsigned int i = 0; i < GRAFT_GATE_MAX; i++) {
		if (is_open(planner, (enum graft_gate)i) && (found & 1u << i) == 0)
			graft_plan_refuse(planner, "the host has no device node for it", "%s", graft_gate_names[i]);
	}
}

int graft_rule_gates(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_inventory *inventory = planner->inventory;

	refuse_empty(planner);
	for (size_t i = 0; i < inventory->n_gate_nodes; i++) {
		const struct graft_gate_node *node = &inventory->gate_nodes[i];

		if (is_open(planner, node->gate) && graft_plan_node(planner, &node->node, "gate-node", why, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < inventory->n_gate_files; i++) {
		const struct graft_gate_file *file = &inventory->gate_files[i];
		struct graft_edit *edit;

		if (!is_open(planner, file->gate))
			continue;
		edit = graft_plan_edit(planner, GRAFT_EDIT_BIND, "gate-file", "%s", why);
		edit->source = graft_plan_on_host(planner, inventory->root, file->path);
		edit->target = graft_plan_copy(planner, file->target ? file->target : file->path);
		edit->type = file->directory ? GRAFT_SOURCE_DIRECTORY : GRAFT_SOURCE_FILE;
		edit->mode = file->directory ? 0755 : 0644;
		edit->flags = GRAFT_FLAGS_FILE | (file->directory ? (uint32_t)GRAFT_MOUNT_RECURSIVE : 0u);
	}
	return 0;
}
