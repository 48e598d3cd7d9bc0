/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices: device nodes and their rules: of the driver as a whole, of each selected GPU, of IMEX channels (SPEC
 * libnvidia-container 9.4 step 10, 9.6, 9.7).
 */
#include <errno.h>
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
 * SECURITY: all others (WSL2's /dev/dxg, the nodes of Tegra) are the GPU itself. Unlike in the existing stack, a container that was given no
 * GPU does not get them.
 */
static const char platform_why[] = "the way to the GPU on this platform";

void graft_plan_device_rule(struct graft_planner *planner, uint32_t major, uint32_t minor, const char *rule,
			    const char *why)
{
	struct graft_edit *edit;

	if (planner->request->no_cgroups || planner->policy->user_namespace)
		return;
	edit = graft_plan_edit(planner, GRAFT_EDIT_CGROUP, rule, "%s", why);
	edit->major = major;
	edit->minor = minor;
	edit->access = graft_plan_copy(planner, "rw"); /* never "m": nodes are given, not made (SPEC 11, invariant 9) */
}

static int fail_absent(const char *path, struct graft_error *err)
{
	return graft_fail(err, GRAFT_NOT_FOUND, ENOENT, "stat failed: %s", path);
}

int graft_plan_node(struct graft_planner *planner, const struct graft_node *node, const char *rule, const char *why,
		    struct graft_error *err)
{
	struct graft_edit *edit;

	if (!planner->request->no_devbind) {
		if (!node->present)
			return fail_absent(node->path, err);
		edit = graft_plan_edit(planner, GRAFT_EDIT_DEVICE, rule, "%s", why);
		edit->source = graft_plan_on_host(planner, planner->inventory->dev_root, node->path);
		edit->target = graft_plan_copy(planner, node->path);
		edit->major = node->major;
		edit->minor = node->minor;
		edit->mode = node->mode;
		edit->flags = GRAFT_FLAGS_DEVICE;
	}
	graft_plan_device_rule(planner, node->major, node->minor, rule, why);
	return 0;
}

static void refuse_kinds(struct graft_planner *planner)
{
	if (planner->request->no_devbind)
		graft_plan_refuse(planner, "excluded by the request: whoever asked makes them",
				  "device nodes (mounts)");
	if (planner->request->no_cgroups)
		graft_plan_refuse(planner, "excluded by the request: whoever asked makes them", "device rules");
	else if (planner->policy->user_namespace)
		graft_plan_refuse(planner, "a container in a user namespace has no rules that could be changed",
				  "device rules");
}

int graft_rule_nodes(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_inventory *inventory = planner->inventory;

	refuse_kinds(planner);
	for (size_t i = 0; i < inventory->n_nodes; i++) {
		const struct graft_node *node = &inventory->nodes[i];
		bool with_gpu = true;
		unsigned int capabilities = 0;
		const char *why = platform_why;

		for (size_t j = 0; j < GRAFT_COUNT(node_rules); j++) {
			if (strcmp(node->path, node_rules[j].path) != 0)
				continue;
			with_gpu = false;
			capabilities = node_rules[j].capabilities;
			why = node_rules[j].why;
		}
		if (capabilities != 0 && !graft_plan_has(planner, capabilities)) {
			const char *words = graft_plan_capability_words(planner, capabilities);

			graft_plan_refuse(planner, "the capability was not asked for", "%s (needs %s)", node->path,
					  words ? words : "");
		} else if (with_gpu && !planner->wants_gpu) {
			graft_plan_refuse(planner, "no GPU was selected", "%s", node->path);
		} else if (!node->present && !planner->wants_gpu && !planner->request->no_devbind) {
			graft_plan_refuse(planner, "it is not there, and no GPU was selected that needs it", "%s",
					  node->path);
		} else if (graft_plan_node(planner, node, "driver-node", why, err) < 0) {
			return -1;
		}
	}
	return 0;
}

static void add_grant(struct graft_planner *planner, const struct graft_gpu *gpu, const struct graft_mig_device *mig)
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

static size_t count_gpus(const struct graft_inventory *inventory)
{
	size_t n = 0;

	for (size_t i = 0; i < inventory->n_gpus; i++)
		n += !inventory->gpus[i].excluded;
	return n;
}

/* Where one node leads to all GPUs, what was not selected cannot be hidden; and where GPUs are not listed, there is one grant for all. */
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

		add_grant(planner, &unlisted[!wsl], NULL);
	} else if (wsl && selection->n_gpus < count_gpus(inventory)) {
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

		add_grant(planner, gpu, NULL);
		if (gpu->node.path && graft_plan_node(planner, &gpu->node, "gpu-node", "a selected GPU", err) < 0)
			return graft_wrap(err, "GPU %u", gpu->index);
		if (planner->inventory->platform != GRAFT_PLATFORM_WSL2)
			graft_plan_gpu_procfs(planner, gpu);
	}
	for (size_t i = 0; i < selection->n_migs; i++)
		add_grant(planner, selection->migs[i].gpu, selection->migs[i].mig);
	return 0;
}

static const struct graft_node *find_channel(const struct graft_inventory *inventory, uint32_t channel)
{
	for (size_t i = 0; i < inventory->n_imex; i++) {
		if (inventory->imex[i].channel == channel)
			return &inventory->imex[i].node;
	}
	return NULL;
}

/* A channel may be asked for twice (SPEC 6.9); one mount is enough. */
static bool asked_before(const struct graft_request *request, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (request->imex_channels[j].id == request->imex_channels[i].id)
			return true;
	}
	return false;
}

int graft_rule_imex(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_request *request = planner->request;

	for (size_t i = 0; i < request->n_imex_channels; i++) {
		uint32_t channel = request->imex_channels[i].id;
		const struct graft_node *node = find_channel(planner->inventory, channel);

		if (asked_before(request, i))
			continue;
		if (!node || !node->present) {
			return graft_fail(err, GRAFT_NOT_FOUND, ENOENT,
					  "stat failed: /dev/nvidia-caps-imex-channels/channel%u", channel);
		}
		if (graft_plan_node(planner, node, "imex-channel", "an IMEX channel that was asked for", err) < 0)
			return -1;
	}
	return 0;
}
