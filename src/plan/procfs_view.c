/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs_view: the container's own /proc/driver/nvidia: a small tmpfs over the kernel's directory,
 * with copies of the files that the driver's libraries read, and nothing of GPUs that were not
 * selected (SPEC libnvidia-container 9.4 step 1, 9.6 item 2).
 */
#include <string.h>

#include "formats/procfs.h"
#include "plan/rules.h"

#define RULE       "procfs-view"
#define DRIVER_DIR "/proc/driver"
#define VIEW_DIR   DRIVER_DIR "/nvidia"

/*
 * Returns a copy of the file's text; *ret_changed is whether it differs from the host's. SECURITY:
 * the driver's libraries create and change device nodes if the parameters allow it. In a container
 * that is neither needed nor wanted (SPEC libnvidia-container 11, invariant 7).
 */
static const char *view_content(struct graft_planner *planner, const char *content, bool *ret_changed)
{
	return graft_procfs_without_device_files(content ? content : "", planner->plan->arena, ret_changed);
}

static void add_file(struct graft_planner *planner, const struct graft_proc_file *file)
{
	bool changed;
	const char *content = view_content(planner, file->content, &changed);
	struct graft_edit *edit = graft_plan_edit(
	    planner, GRAFT_EDIT_FILE, RULE,
	    changed ? "the driver's libraries read it; it keeps them from creating device nodes (%s)"
		    : "the driver's libraries read it",
	    GRAFT_PARAMS_NO_DEVICE_FILES);

	edit->target = graft_plan_copy(planner, file->path);
	edit->content = content;
	edit->mode = file->mode;
}

static void add_tmpfs(struct graft_planner *planner, const char *target)
{
	struct graft_edit *edit = graft_plan_edit(planner, GRAFT_EDIT_TMPFS, RULE,
						  "hides the GPUs of the host that were not selected");

	edit->target = graft_plan_copy(planner, target);
	edit->mode = 0555;
	edit->flags = GRAFT_FLAGS_TMPFS;
}

/* Returns why there can be no view, or NULL if there can. */
static const char *procfs_view_obstacle(const struct graft_planner *planner)
{
	if (planner->inventory->platform == GRAFT_PLATFORM_WSL2)
		return "the driver of WSL2 has no procfs files";
	if (planner->policy->no_procfs_view)
		return "a plan of this style cannot mount one";
	if (planner->inventory->platform == GRAFT_PLATFORM_TEGRA && planner->inventory->n_proc_files == 0)
		return "this driver has no procfs files";
	if (!planner->policy->image.proc_driver && !planner->policy->image.proc_driver_nvidia)
		return "the container's procfs has no /proc/driver to mount it on (is /proc mounted there?)";
	return NULL;
}

void graft_rule_procfs_view(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;
	const char *why_not = procfs_view_obstacle(planner);
	struct graft_edit *edit;

	if (why_not) {
		graft_plan_refuse(planner, why_not, "procfs view " VIEW_DIR);
		return;
	}
	planner->procfs_view = true;
	if (planner->policy->image.proc_driver_nvidia) {
		add_tmpfs(planner, VIEW_DIR);
	} else {
		/*
		 * Procfs does not allow making directories: without the kernel's directory, the
		 * tmpfs goes one level higher.
		 */
		add_tmpfs(planner, DRIVER_DIR);
		edit = graft_plan_edit(planner, GRAFT_EDIT_DIRECTORY, RULE,
				       "no kernel driver is loaded, so procfs has no such directory to mount on");
		edit->target = graft_plan_copy(planner, VIEW_DIR);
		edit->mode = 0555;
	}
	for (size_t i = 0; i < inventory->n_proc_files; i++)
		add_file(planner, &inventory->proc_files[i]);
}

void graft_plan_gpu_procfs(struct graft_planner *planner, const struct graft_gpu *gpu)
{
	struct graft_edit *edit;

	if (!planner->procfs_view)
		return;
	if (!gpu->procfs_path) {
		graft_plan_refuse(planner, "the driver has none for this GPU", "procfs directory of GPU %u",
				  gpu->index);
		return;
	}
	edit = graft_plan_edit(planner, GRAFT_EDIT_BIND, "gpu-procfs", "what the driver says about this GPU");
	edit->source = graft_plan_on_host(planner, planner->inventory->proc_root, gpu->procfs_path);
	edit->target = graft_plan_copy(planner, gpu->procfs_path);
	edit->type = GRAFT_SOURCE_DIRECTORY;
	edit->mode = 0555;
	edit->flags = GRAFT_FLAGS_PROC;
}

/*
 * Without a view of its own, the container sees the kernel's file, which is covered if its text
 * must change, now or when the plan is used.
 */
void graft_rule_params(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;

	for (size_t i = 0; i < inventory->n_proc_files; i++) {
		const struct graft_proc_file *file = &inventory->proc_files[i];
		struct graft_edit *edit;
		const char *content;
		bool changed;

		if (strcmp(file->path, VIEW_DIR "/params") != 0)
			continue;
		content = view_content(planner, file->content, &changed);
		if (!changed && !planner->policy->shared)
			continue;
		if (graft_plan_is_disabled(planner, GRAFT_HOOK_PARAMS)) {
			graft_plan_refuse(planner, "switched off by the administrator", "the driver's parameter %s",
					  GRAFT_PARAMS_NO_DEVICE_FILES);
			continue;
		}
		edit = graft_plan_edit(planner, GRAFT_EDIT_COVER, "driver-params",
				       "keeps the driver's libraries from creating device nodes (%s)",
				       GRAFT_PARAMS_NO_DEVICE_FILES);
		edit->target = graft_plan_copy(planner, file->path);
		edit->content = content;
		edit->mode = 0444;
		edit->flags = GRAFT_FLAGS_PROC;
	}
}
