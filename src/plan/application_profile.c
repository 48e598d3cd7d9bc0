/* SPDX-License-Identifier: Apache-2.0 */
/*
 * application_profile: restricts the GPUs that EGL shows (SPEC libnvidia-container 9.6 item 3). EGL
 * finds GPUs in other ways than through device nodes, so without this, programs would see GPUs that
 * were not selected.
 */
#include <inttypes.h>

#include "plan/hook_edits.h"
#include "plan/rules.h"

#define RULE "application-profile"

static uint64_t mask_visible_gpus(struct graft_planner *planner)
{
	const struct graft_selection *selection = planner->selection;
	uint64_t mask = 0;

	for (size_t i = 0; i < selection->n_gpus; i++) {
		uint32_t minor = selection->gpus[i]->node.minor;

		if (minor < 64)
			mask |= (uint64_t)1 << minor;
		else
			graft_plan_refuse(planner, "the driver's mask of visible GPUs has 64 bits",
					  "EGL on GPU %u (minor %u)", selection->gpus[i]->index, minor);
	}
	return mask;
}

/* In style NAMESPACE, exactly this text, by which tools recognise it. */
static const char *content(struct graft_planner *planner)
{
	static const char spaced[] = "{ \"profiles\": [{\"name\": \"_container_\", \"settings\": "
				     "[\"EGLVisibleDGPUDevices\", 0x%" PRIx64
				     "]}], \"rules\": [{\"pattern\": [], \"profile\": \"_container_\"}]}";
	uint64_t mask = mask_visible_gpus(planner);

	return planner->oci ? graft_hook_profile_text(planner->plan->arena, mask)
			    : graft_arena_printf(planner->plan->arena, spaced, mask);
}

/*
 * A container without a GPU gets an empty directory of its own, if it can have one, so that no
 * profile of the image applies.
 */
static bool is_profile_wanted(struct graft_planner *planner)
{
	if (!graft_plan_has(planner, graft_class_capabilities(GRAFT_CLASS_GRAPHICS)) ||
	    planner->inventory->platform != GRAFT_PLATFORM_NATIVE)
		return false;
	if (graft_plan_is_disabled(planner, GRAFT_HOOK_PROFILE)) {
		graft_plan_refuse(planner, "switched off by the administrator", "application profile for EGL");
		return false;
	}
	return !planner->oci || planner->policy->shared || planner->selection->n_gpus > 0;
}

void graft_rule_application_profile(struct graft_planner *planner)
{
	static const char why[] = "keeps EGL from showing GPUs that were not selected";
	struct graft_edit *edit;

	if (!is_profile_wanted(planner))
		return;
	edit = graft_plan_edit(planner, GRAFT_EDIT_DIRECTORY, RULE, "%s", why);
	edit->target = graft_plan_copy(planner, GRAFT_PROFILE_DIRECTORY);
	edit->mode = 0555;
	if (!planner->oci) {
		edit = graft_plan_edit(planner, GRAFT_EDIT_TMPFS, RULE, "%s", why);
		edit->target = graft_plan_copy(planner, GRAFT_PROFILE_DIRECTORY);
		edit->mode = 0555;
		edit->flags = GRAFT_FLAGS_TMPFS;
	}
	if (planner->selection->n_gpus == 0)
		return;
	edit = graft_plan_edit(planner, GRAFT_EDIT_FILE, RULE, "%s", why);
	edit->target = graft_plan_copy(planner, GRAFT_PROFILE_FILE);
	edit->content = content(planner);
	edit->mode = planner->oci ? 0444 : 0555;
}
