/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drm: display and render nodes of selected GPUs, and the links that name them by PCI address (SPEC runtime-and-hook 7.4, 10.3): for containers that
 * asked for graphics, whichever way they are configured.
 */
#include "plan/rules.h"

static const char why[] = "display and render nodes of a selected GPU";

/* Why the container does not get them; NULL when it does. */
static const char *obstacle(const struct graft_planner *planner, const struct graft_gpu *gpu)
{
	if (!graft_plan_has(planner, graft_class_capabilities(GRAFT_CLASS_GRAPHICS)))
		return "neither graphics nor display was asked for";
	if (planner->request->no_devbind)
		return "excluded by the request: whoever asked makes them";
	/* SECURITY: they lead to the whole GPU, whatever instance of it was given. */
	if (gpu->mig_enabled)
		return "the GPU is in MIG mode, in which it does no graphics";
	return NULL;
}

static void add_link(struct graft_planner *planner, const struct graft_drm_node *drm)
{
	struct graft_edit *edit;

	if (!drm->by_path || graft_plan_is_disabled(planner, GRAFT_HOOK_SYMLINKS))
		return;
	edit = graft_plan_edit(planner, GRAFT_EDIT_SYMLINK, "drm-link", "names the node by the GPU's PCI address");
	edit->target = graft_plan_copy(planner, drm->by_path);
	edit->content = graft_plan_copy(planner, drm->by_path_content);
}

int graft_plan_drm(struct graft_planner *planner, const struct graft_gpu *gpu, struct graft_error *err)
{
	const char *why_not = obstacle(planner, gpu);

	if (why_not && gpu->n_drm_nodes > 0)
		graft_plan_refuse(planner, why_not, "DRM nodes of GPU %u: %zu", gpu->index, gpu->n_drm_nodes);
	if (why_not)
		return 0;
	for (size_t i = 0; i < gpu->n_drm_nodes; i++) {
		if (graft_plan_node(planner, &gpu->drm_nodes[i].node, "drm-node", why, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < gpu->n_drm_nodes; i++)
		add_link(planner, &gpu->drm_nodes[i]);
	return 0;
}
