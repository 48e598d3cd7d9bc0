/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links: names under which the injected libraries are looked for. Soname links are what a run of ldconfig would make;
 * here they are edits like all others. The few others are those of SPEC libnvidia-container 9.5.
 */
#include <string.h>

#include "base/cleanup.h"
#include "plan/rules.h"

static const struct {
	const char *prefix; /* of the library's file name */
	const char *link;
	const char *says; /* NULL = the library's file name */
	const char *why;
} extra_links[] = {
	{ "libcuda.so", "libcuda.so", "libcuda.so.1", "programs that load CUDA by its development name" },
	{ "libGLX_nvidia.so", "libGLX_indirect.so.0", NULL, "GLX falls back to this name for indirect rendering" },
	{ "libnvidia-opticalflow.so", "libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1",
	  "the optical flow SDK loads the library by its development name" },
};

static void add_link(struct graft_planner *planner, const char *directory, const char *name, const char *says,
		     const char *rule, const char *why)
{
	struct graft_edit *edit = graft_plan_edit(planner, GRAFT_EDIT_SYMLINK, rule, "%s", why);

	edit->target = graft_plan_join(planner, directory, name);
	edit->content = graft_plan_copy(planner, says);
}

static void add_soname_links(struct graft_planner *planner, const struct graft_library *libraries, size_t n,
			     const char *directory)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = graft_plan_base_name(libraries[i].path);
		struct graft_edit *edit;

		if (!graft_plan_is_first(planner, libraries, i) || strcmp(libraries[i].soname, name) == 0)
			continue;
		edit = graft_plan_edit(planner, GRAFT_EDIT_SYMLINK, "soname-link",
				       "the name that programs are linked against; an image's own is replaced");
		edit->source = graft_plan_on_host(planner, planner->inventory->root, libraries[i].path);
		edit->target = graft_plan_join(planner, directory, libraries[i].soname);
		edit->content = graft_plan_copy(planner, name);
		edit->conflict = GRAFT_CONFLICT_REPLACE;
		/* SECURITY: where the image has a file, the library is bound over it: no less protected than a bind. */
		edit->mode = 0644;
		edit->flags = GRAFT_FLAGS_FILE;
	}
}

static void add_extra_links(struct graft_planner *planner, const struct graft_library *libraries, size_t n,
			    const char *directory)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = graft_plan_base_name(libraries[i].path);

		if (!graft_plan_is_first(planner, libraries, i))
			continue;
		for (size_t j = 0; j < GRAFT_COUNT(extra_links); j++) {
			if (strncmp(name, extra_links[j].prefix, strlen(extra_links[j].prefix)) == 0)
				add_link(planner, directory, extra_links[j].link,
					 extra_links[j].says ? extra_links[j].says : name, "library-link",
					 extra_links[j].why);
		}
	}
}

void graft_rule_links(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;
	size_t n32 = graft_plan_has(planner, GRAFT_CAP_COMPAT32) ? inventory->n_libraries32 : 0;

	add_soname_links(planner, inventory->libraries, inventory->n_libraries, planner->libs_dir);
	add_soname_links(planner, inventory->libraries32, n32, planner->libs32_dir);
	add_extra_links(planner, inventory->libraries, inventory->n_libraries, planner->libs_dir);
	add_extra_links(planner, inventory->libraries32, n32, planner->libs32_dir);
}
