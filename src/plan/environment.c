/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment: variables for programs, and for runtimes that run later (SPEC runtime-and-hook 7.5).
 * Only in style OCI, where the configuration that has the environment can still be edited.
 */
#include <string.h>

#include "base/strings.h"
#include "plan/rules.h"

static void set_plan_variable(struct graft_planner *planner, const char *name, const char *value, const char *why)
{
	struct graft_edit *edit = graft_plan_edit(planner, GRAFT_EDIT_ENV, "environment", "%s", why);

	edit->target = graft_plan_copy(planner, name);
	edit->content = value;
}

/*
 * Returns whether the library's path identifies a directory of the driver: it has the driver's
 * version and is not a plug-in.
 */
static bool marks_directory(const struct graft_planner *planner, const struct graft_library *library,
			    const char *directory)
{
	const char *version = planner->inventory->driver_version.value;

	return version && graft_ends_with(library->path, version) && !graft_ends_with(directory, "/vdpau");
}

/* The directories of the driver's libraries, each once, separated by colons. */
static const char *library_directories(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;
	struct graft_arena *arena = planner->plan->arena;
	const char **directories = NULL, *list = NULL;
	size_t n = 0;

	for (size_t i = 0; i < inventory->n_libraries; i++) {
		const struct graft_library *library = &inventory->libraries[i];
		const char *directory = graft_plan_library_directory(planner, library, NULL);

		if (directory && marks_directory(planner, library, directory) &&
		    !graft_is_in(directories, n, directory))
			(void)graft_arena_push_string(arena, &directories, &n, directory);
	}
	for (size_t i = 0; i < n; i++)
		list = list ? graft_arena_printf(arena, "%s:%s", list, directories[i]) : directories[i];
	return list;
}

void graft_rule_environment(struct graft_planner *planner)
{
	const char *directories = library_directories(planner);

	if (planner->plan->n_grants == 0 && !planner->policy->shared && !planner->request->management &&
	    planner->inventory->platform == GRAFT_PLATFORM_NATIVE)
		set_plan_variable(planner, "NVCT_EMPTY_DEVICE", graft_plan_copy(planner, ""),
				  "says that the driver was asked for without a GPU");
	if (planner->inventory->platform == GRAFT_PLATFORM_NATIVE && directories)
		set_plan_variable(planner, "NVIDIA_CTK_LIBCUDA_DIR", directories,
				  "says where the driver's libraries are");
	set_plan_variable(planner, "NVIDIA_VISIBLE_DEVICES", graft_plan_copy(planner, "void"),
			  "the container is configured: a runtime or hook that runs later has nothing to do");
}
