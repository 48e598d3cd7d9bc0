/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_drm: display and render nodes of selected GPUs, and the links that name them by PCI address
 * (SPEC runtime-and-hook 7.4, 10.3), for containers that requested graphics, in either style.
 */
#include <string.h>

#include "host/discover.h"
#include "plan/rules.h"

/*
 * The product line that has MIG profiles with graphics; MIG devices of other GPUs need not be asked
 * about.
 */
#define GRAPHICS_MODEL "RTX PRO"

static const char why[] = "display and render nodes of a selected GPU";

/* As far as is known. */
static bool does_graphics(const struct graft_mig_device *mig)
{
	return mig->profile.value && strstr(mig->profile.value, "+gfx");
}

unsigned int graft_plan_missing_facts(const struct graft_request *request, const struct graft_selection *selection)
{
	if ((request->capabilities & graft_class_capabilities(GRAFT_CLASS_GRAPHICS)) == 0)
		return 0;
	for (size_t i = 0; i < selection->n_migs; i++) {
		const struct graft_gpu *gpu = selection->migs[i].gpu;

		if (gpu->n_drm_nodes > 0 && gpu->model.value && strstr(gpu->model.value, GRAPHICS_MODEL) &&
		    !selection->migs[i].mig->profile.value)
			return GRAFT_NVML_MIG;
	}
	return 0;
}

static bool has_graphics_mig(const struct graft_selection *selection, const struct graft_gpu *gpu)
{
	for (size_t i = 0; i < selection->n_migs; i++) {
		if (selection->migs[i].gpu == gpu && does_graphics(selection->migs[i].mig))
			return true;
	}
	return false;
}

/* Returns why the container does not get the nodes, or NULL if it does. */
static const char *drm_obstacle(const struct graft_planner *planner, const struct graft_gpu *gpu)
{
	if (!graft_plan_has(planner, graft_class_capabilities(GRAFT_CLASS_GRAPHICS)))
		return "neither graphics nor display was asked for";
	if (planner->request->no_devbind)
		return "excluded by the request: the caller provides them";
	/*
	 * SECURITY: they give access to the whole GPU, so an instance that cannot use them does not
	 * get them.
	 */
	if (gpu->mig_enabled && !has_graphics_mig(planner->selection, gpu))
		return "the GPU is in MIG mode, and no selected MIG device of it is known to do graphics (+gfx)";
	return NULL;
}

static void plan_drm_link(struct graft_planner *planner, const struct graft_drm_node *drm)
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
	const char *why_not = drm_obstacle(planner, gpu);

	if (why_not && gpu->n_drm_nodes > 0)
		graft_plan_refuse(planner, why_not, "DRM nodes of GPU %u: %zu", gpu->index, gpu->n_drm_nodes);
	if (why_not)
		return 0;
	for (size_t i = 0; i < gpu->n_drm_nodes; i++) {
		if (graft_plan_node(planner, &gpu->drm_nodes[i].node, "drm-node", why, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < gpu->n_drm_nodes; i++)
		plan_drm_link(planner, &gpu->drm_nodes[i]);
	return 0;
}
