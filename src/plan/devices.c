/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices: device nodes and their rules, of the driver as a whole and of each selected GPU (SPEC
 * libnvidia-container 9.4 step 10, 9.6; SPEC runtime-and-hook 7.4, 7.5).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "plan/rules.h"

#define UVM_WHY "unified memory, which CUDA needs"

/* The driver-level nodes of the native driver, by path. */
static const struct {
	const char *path;
	unsigned int capabilities; /* 0 = always */
	const char *why;
} node_rules[] = {
	{ "/dev/nvidiactl", 0, "control node of the driver, without which nothing works" },
	{ "/dev/nvidia-uvm", GRAFT_CAP_COMPUTE | GRAFT_CAP_VIDEO, UVM_WHY },
	{ "/dev/nvidia-uvm-tools", GRAFT_CAP_COMPUTE | GRAFT_CAP_VIDEO, UVM_WHY " (its tools)" },
	{ "/dev/nvidia-modeset", GRAFT_CAP_DISPLAY, "mode setting, for display servers" },
};
/*
 * SECURITY: all others (WSL2's /dev/dxg, the nodes of Tegra) are the GPU itself. Unlike in the
 * existing stack, a container without a GPU does not get them.
 */
static const char platform_why[] = "gives access to the GPU on this platform";

unsigned int graft_plan_node_capabilities(const char *path)
{
	for (size_t i = 0; i < GRAFT_COUNT(node_rules); i++)
		if (strcmp(path, node_rules[i].path) == 0)
			return node_rules[i].capabilities;
	return 0;
}

void graft_plan_device_rule(struct graft_planner *planner, uint32_t major, uint32_t minor, const char *rule,
			    const char *why)
{
	struct graft_edit *edit;

	if (planner->request->no_cgroups || planner->policy->user_namespace)
		return;
	edit = graft_plan_edit(planner, GRAFT_EDIT_CGROUP, rule, "%s", why);
	edit->major = major;
	edit->minor = minor;
	/*
	 * Never "m" where nodes are bound (SPEC libnvidia-container 11, invariant 9). Where a
	 * runtime makes them, tools compare this with what CDI has.
	 */
	edit->access = graft_plan_copy(planner, planner->oci ? "rwm" : "rw");
}

static int fail_absent_node(const struct graft_planner *planner, const char *path, struct graft_error *err)
{
	if (planner->oci)
		return graft_fail(err, GRAFT_NOT_FOUND, 0,
				  "device node %s is missing on the host; running nvidia-smi or nvidia-modprobe there "
				  "creates the nodes",
				  path);
	return graft_fail(err, GRAFT_NOT_FOUND, ENOENT, "stat failed: %s", path);
}

int graft_plan_node(struct graft_planner *planner, const struct graft_node *node, const char *rule, const char *why,
		    struct graft_error *err)
{
	struct graft_edit *edit;

	if (!planner->request->no_devbind) {
		if (!node->present)
			return fail_absent_node(planner, node->path, err);
		edit = graft_plan_edit(planner, GRAFT_EDIT_DEVICE, rule, "%s", why);
		edit->source = graft_plan_on_host(planner, planner->inventory->dev_root, node->path);
		edit->target = graft_plan_copy(planner, node->path);
		edit->major = node->major;
		edit->minor = node->minor;
		edit->mode = node->mode;
		edit->uid = node->uid;
		edit->gid = node->gid;
		edit->flags = planner->oci ? 0 : GRAFT_FLAGS_DEVICE; /* a node that is made is not a mount */
	}
	graft_plan_device_rule(planner, node->major, node->minor, rule, why);
	return 0;
}

static void refuse_kinds(struct graft_planner *planner)
{
	if (planner->request->no_devbind)
		graft_plan_refuse(planner, "excluded by the request: the caller provides them",
				  "device nodes (mounts)");
	if (planner->request->no_cgroups)
		graft_plan_refuse(planner, "excluded by the request: the caller provides them", "device rules");
	else if (planner->policy->user_namespace)
		graft_plan_refuse(planner, "a container in a user namespace has no device rules that could be changed",
				  "device rules");
}

/* Returns why a node is refused, or NULL if it is given. */
static const char *node_obstacle(const struct graft_planner *planner, const struct graft_node *node, bool with_gpu,
				 bool needed)
{
	if (with_gpu && !planner->wants_gpu)
		return "no GPU was selected";
	if (node->present || planner->request->no_devbind)
		return NULL;
	if (!planner->wants_gpu)
		return "it does not exist, and no selected GPU needs it";
	/*
	 * A node that only one capability uses may be absent, such as nvidia-modeset on a server
	 * without displays: images ask for all capabilities.
	 */
	return needed ? NULL : "the host does not have it";
}

static int plan_driver_level_node(struct graft_planner *planner, const struct graft_node *node, struct graft_error *err)
{
	bool with_gpu = true, needed = true;
	unsigned int capabilities = 0;
	const char *why = platform_why, *why_not;

	for (size_t j = 0; j < GRAFT_COUNT(node_rules); j++) {
		if (strcmp(node->path, node_rules[j].path) != 0)
			continue;
		with_gpu = false;
		capabilities = node_rules[j].capabilities;
		needed = capabilities == 0;
		why = node_rules[j].why;
	}
	if (capabilities != 0 && !graft_plan_has(planner, capabilities)) {
		const char *words = graft_plan_capability_words(planner, capabilities);

		graft_plan_refuse(planner, "the capability was not asked for", "%s (needs %s)", node->path,
				  words ? words : "");
		return 0;
	}
	why_not = node_obstacle(planner, node, with_gpu, needed);
	if (why_not) {
		graft_plan_refuse(planner, why_not, "%s", node->path);
		return 0;
	}
	return graft_plan_node(planner, node, "driver-node", why, err);
}

static int compare_node_paths(const void *a, const void *b)
{
	const struct graft_node *x, *y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return graft_path_compare(x->path, y->path);
}

int graft_rule_nodes(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_inventory *inventory = planner->inventory;
	const struct graft_node **nodes = graft_arena_list(planner->plan->arena, inventory->n_nodes, sizeof(*nodes));

	refuse_kinds(planner);
	for (size_t i = 0; nodes && i < inventory->n_nodes; i++)
		nodes[i] = &inventory->nodes[i];
	if (nodes && planner->oci)
		qsort(nodes, inventory->n_nodes, sizeof(*nodes), compare_node_paths);
	for (size_t i = 0; nodes && i < inventory->n_nodes; i++) {
		if (plan_driver_level_node(planner, nodes[i], err) < 0)
			return -1;
	}
	return 0;
}

static void add_gpu_grant(struct graft_planner *planner, const struct graft_gpu *gpu,
			  const struct graft_mig_device *mig)
{
	struct graft_plan *plan = planner->plan;
	struct graft_grant *grant = graft_arena_push(plan->arena, &plan->grants, &plan->n_grants, sizeof(*grant));

	if (!grant)
		return;
	grant->uuid = graft_plan_copy(planner, mig ? mig->uuid.value : gpu->uuid.value);
	grant->bus_id = graft_plan_copy(planner, gpu->bus_id);
	grant->model = graft_plan_copy(planner, gpu->model.value);
	grant->index = gpu->index;
	grant->minor = gpu->node.minor;
	if (mig) {
		grant->mig = true;
		grant->mig_index = mig->index;
		grant->gi = mig->gi;
		grant->ci = mig->ci;
	}
}

/*
 * If one node gives access to all GPUs, those that were not selected cannot be hidden; if GPUs are
 * not listed, there is one grant for all of them.
 */
static void tell_platform_grant(struct graft_planner *planner)
{
	const struct graft_selection *selection = planner->selection;
	const struct graft_inventory *inventory = planner->inventory;
	bool wsl = inventory->platform == GRAFT_PLATFORM_WSL2;

	if (!planner->wants_gpu)
		return;
	if (selection->n_gpus == 0) {
		static const struct graft_gpu unlisted[] = { { .model = { .value = "all GPUs of this WSL2 host" } },
							     { .model = { .value = "the integrated GPU" } } };

		add_gpu_grant(planner, &unlisted[!wsl], NULL);
	} else if (wsl && selection->n_gpus < graft_inventory_count_gpus(inventory)) {
		graft_plan_refuse(planner, "WSL2 has one device node for all of them",
				  "hiding the GPUs that were not selected");
	}
}

int graft_rule_gpus(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_selection *selection = planner->selection;

	tell_platform_grant(planner);
	for (size_t i = 0; i < selection->n_gpus; i++) {
		const struct graft_gpu *gpu = selection->gpus[i];

		add_gpu_grant(planner, gpu, NULL);
		if (gpu->node.path && graft_plan_node(planner, &gpu->node, "gpu-node", "a selected GPU", err) < 0)
			return graft_wrap(err, "GPU %u", gpu->index);
		if (graft_plan_drm(planner, gpu, err) < 0)
			return graft_wrap(err, "GPU %u", gpu->index);
		if (planner->inventory->platform != GRAFT_PLATFORM_WSL2)
			graft_plan_gpu_procfs(planner, gpu);
	}
	for (size_t i = 0; i < selection->n_migs; i++)
		add_gpu_grant(planner, selection->migs[i].gpu, selection->migs[i].mig);
	return 0;
}
