/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_mig: access to selected MIG devices, and permission to configure or monitor MIG (SPEC
 * libnvidia-container 3.5 steps 12 to 14, 9.7).
 */
#include <string.h>

#include "plan/rules.h"

#define CAPABILITIES_DIR "/proc/driver/nvidia/capabilities"
#define CAPS_NODES_DIR   "/dev/nvidia-caps"
#define INSTANCE_MODE    0444

static const char all_why[] = "the capabilities of all MIG devices, which configuring and watching need";

/* Adds the file that gives access to one instance, and its node if the driver has such nodes. */
static int add_access(struct graft_planner *planner, const char *caps_path, const struct graft_node *node,
		      const char *why, struct graft_error *err)
{
	struct graft_edit *edit;

	if (planner->procfs_view && caps_path) {
		const char *path = graft_plan_join(planner, caps_path, "access");

		edit = graft_plan_edit(planner, GRAFT_EDIT_BIND, "mig-access", "%s", why);
		edit->source = path ? graft_plan_on_host(planner, planner->inventory->proc_root, path) : NULL;
		edit->target = path;
		edit->mode = 0444;
		edit->flags = GRAFT_FLAGS_PROC;
	}
	if (!planner->inventory->caps_devices)
		return 0;
	if (!node->path && planner->oci)
		return graft_fail(err, GRAFT_NOT_FOUND, 0, "the driver names no capability device for %s",
				  caps_path ? caps_path : why);
	if (!node->path)
		return 0;
	return graft_plan_node(planner, node, "mig-node", why, err);
}

static int add_selected_migs(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_selection *selection = planner->selection;

	for (size_t i = 0; i < selection->n_migs; i++) {
		const struct graft_gpu *gpu = selection->migs[i].gpu;
		const struct graft_mig_device *mig = selection->migs[i].mig;

		if (add_access(planner, mig->gi_caps_path, &mig->gi_node, "GPU instance of a selected MIG device",
			       err) < 0 ||
		    add_access(planner, mig->ci_caps_path, &mig->ci_node, "compute instance of a selected MIG device",
			       err) < 0)
			return graft_wrap(err, "MIG device %u:%u", gpu->index, mig->index);
	}
	return 0;
}

/* Adds the directories that config and monitor share, once. */
static void add_directories(struct graft_planner *planner)
{
	struct graft_edit *edit;

	if (planner->procfs_view) {
		edit = graft_plan_edit(planner, GRAFT_EDIT_BIND, "mig-capabilities", "%s", all_why);
		edit->source = graft_plan_on_host(planner, planner->inventory->proc_root, CAPABILITIES_DIR);
		edit->target = graft_plan_copy(planner, CAPABILITIES_DIR);
		edit->type = GRAFT_SOURCE_DIRECTORY;
		edit->mode = 0555;
		edit->flags = GRAFT_FLAGS_PROC;
	}
	if (planner->inventory->caps_devices) {
		/*
		 * SPEC libnvidia-container 9.7: regardless of no-devbind, because nodes appear in
		 * it when instances are made.
		 */
		edit = graft_plan_edit(planner, GRAFT_EDIT_BIND, "mig-capabilities", "%s", all_why);
		edit->source = graft_plan_on_host(planner, planner->inventory->dev_root, CAPS_NODES_DIR);
		edit->target = graft_plan_copy(planner, CAPS_NODES_DIR);
		edit->type = GRAFT_SOURCE_DIRECTORY;
		edit->mode = 0755;
		edit->flags = GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC;
	}
}

/*
 * Adds the rules for `node` (config or monitor) and for every instance that the GPUs have or may
 * get.
 */
static void add_rules(struct graft_planner *planner, const struct graft_node *node, const struct graft_gpu **gpus,
		      size_t n_gpus, const char *rule, const char *why)
{
	if (!planner->inventory->caps_devices)
		return;
	if (node->path)
		graft_plan_device_rule(planner, node->major, node->minor, rule, why);
	for (size_t i = 0; i < n_gpus; i++) {
		for (size_t j = 0; j < gpus[i]->n_caps_nodes; j++)
			graft_plan_device_rule(planner, gpus[i]->caps_nodes[j].major, gpus[i]->caps_nodes[j].minor,
					       rule, why);
	}
}

/*
 * Adds the node of an instance that a GPU may get. It need not exist yet: the driver's table has
 * its number, and a low-level runtime that makes nodes needs no more
 * (docs/decisions/0018-nodes-before-their-instances.md). The driver's files specify the same mode
 * for every existing instance.
 */
static int add_instance_node(struct graft_planner *planner, const struct graft_node *node, struct graft_error *err)
{
	struct graft_node later = *node;
	struct graft_edit *edits;
	size_t first = planner->plan->n_edits;

	if (node->present)
		return graft_plan_node(planner, node, "mig-capabilities", all_why, err);
	if (planner->policy->no_new_nodes)
		return 0;
	later.present = true;
	later.mode = INSTANCE_MODE;
	if (graft_plan_node(planner, &later, "mig-capabilities", all_why, err) < 0)
		return -1;
	edits = planner->plan->edits;
	for (size_t i = first; i < planner->plan->n_edits; i++)
		edits[i].optional = edits[i].kind == GRAFT_EDIT_DEVICE;
	return 0;
}

/*
 * Style OCI: a low-level runtime gives nodes and their rules together, and nothing can appear in a
 * container's /dev later, so every node that may come into existence is given at the start.
 */
static int add_nodes(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_selection *selection = planner->selection;
	const struct graft_inventory *inventory = planner->inventory;
	bool config = selection->n_mig_config_gpus > 0, monitor = selection->n_mig_monitor_gpus > 0;
	const struct graft_gpu **gpus = config ? selection->mig_config_gpus : selection->mig_monitor_gpus;
	size_t n_gpus = config ? selection->n_mig_config_gpus : selection->n_mig_monitor_gpus;

	if (!inventory->caps_devices)
		return 0;
	if (config && inventory->mig_config_node.path &&
	    graft_plan_node(planner, &inventory->mig_config_node, "mig-config", "may create and destroy MIG devices",
			    err) < 0)
		return -1;
	if (monitor && inventory->mig_monitor_node.path &&
	    graft_plan_node(planner, &inventory->mig_monitor_node, "mig-monitor", "may watch all MIG devices", err) < 0)
		return -1;
	for (size_t i = 0; i < n_gpus; i++) {
		for (size_t j = 0; j < gpus[i]->n_caps_nodes; j++) {
			if (add_instance_node(planner, &gpus[i]->caps_nodes[j], err) < 0)
				return -1;
		}
	}
	return 0;
}

static bool has_selected_mig(const struct graft_selection *selection, const struct graft_gpu *gpu)
{
	for (size_t i = 0; i < selection->n_migs; i++) {
		if (selection->migs[i].gpu == gpu)
			return true;
	}
	return false;
}

/*
 * A GPU in MIG mode that was selected as a whole is of little use: it is visible, but nothing can
 * run on it.
 */
static void refuse_unselected(struct graft_planner *planner)
{
	const struct graft_selection *selection = planner->selection;

	for (size_t i = 0; i < selection->n_gpus; i++) {
		const struct graft_gpu *gpu = selection->gpus[i];

		if (gpu->mig_enabled && !has_selected_mig(selection, gpu))
			graft_plan_refuse(planner,
					  gpu->n_mig_devices == 0
					      ? "the GPU is in MIG mode and has none: nothing can run on it"
					      : "the GPU is in MIG mode; its MIG devices must be named, by index "
						"(0:0) or UUID, or come with 'all'",
					  "MIG devices of GPU %u", gpu->index);
	}
}

int graft_rule_mig(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_selection *selection = planner->selection;
	const struct graft_inventory *inventory = planner->inventory;
	const struct graft_request *request = planner->request;

	/*
	 * SPEC libnvidia-container 7.3: this applies if "all" was given, even if no GPU supports
	 * MIG.
	 */
	if (!request->mig_config && !request->mig_monitor) {
		refuse_unselected(planner);
		return add_selected_migs(planner, err);
	}
	if (selection->n_migs > 0)
		graft_plan_refuse(planner, "the container gets the capabilities of all MIG devices instead",
				  "access to single MIG devices");
	if (selection->n_mig_config_gpus == 0 && selection->n_mig_monitor_gpus == 0) {
		graft_plan_refuse(planner, "no selected GPU supports MIG", "MIG configuration and monitoring");
		return 0;
	}
	if (planner->oci)
		return add_nodes(planner, err);
	add_directories(planner);
	if (selection->n_mig_config_gpus > 0)
		add_rules(planner, &inventory->mig_config_node, selection->mig_config_gpus,
			  selection->n_mig_config_gpus, "mig-config", "may create and destroy MIG devices");
	if (selection->n_mig_monitor_gpus > 0)
		add_rules(planner, &inventory->mig_monitor_node, selection->mig_monitor_gpus,
			  selection->n_mig_monitor_gpus, "mig-monitor", "may watch all MIG devices");
	return 0;
}
