/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_libraries: the driver's libraries, each bound under its own file name (SPEC
 * libnvidia-container 9.4 steps 4 and 5).
 */
#include <string.h>

#include "plan/dispensable.h"
#include "plan/rules.h"

static bool is_asked_for(const struct graft_planner *planner, enum graft_class class_)
{
	const uint32_t everything = GRAFT_CAP_ALL & ~(uint32_t)GRAFT_CAP_COMPAT32;

	/*
	 * The purpose of an unknown library is not known: a container that requests everything gets
	 * it.
	 */
	if (class_ == GRAFT_CLASS_OTHER)
		return planner->oci && (planner->request->capabilities & everything) == everything;
	/*
	 * SPEC libnvidia-container 6.3: on WSL2, libdxcore goes into every container, whatever it
	 * requests.
	 */
	return class_ == GRAFT_CLASS_WSL || graft_plan_has(planner, graft_class_capabilities(class_));
}

/*
 * Returns whether two libraries have the same target. At the host's paths, two directories may have
 * files of one name.
 */
static bool is_same_place(const struct graft_planner *planner, const char *a, const char *b)
{
	return planner->oci ? strcmp(a, b) == 0 : strcmp(graft_path_name(a), graft_path_name(b)) == 0;
}

/*
 * Returns whether the container gets an earlier library of the list with the same target. `takes`
 * is set for indices below `i`.
 */
static bool has_rival(const struct graft_planner *planner, const struct graft_library *libraries, size_t i,
		      const bool *takes)
{
	for (size_t j = 0; j < i; j++) {
		if (takes[j] && is_same_place(planner, libraries[j].path, libraries[i].path))
			return true;
	}
	return false;
}

static const bool *choose_planned_libraries(struct graft_planner *planner, const struct graft_library *libraries,
					    size_t n)
{
	bool *takes = graft_arena_list(planner->plan->arena, n, sizeof(*takes));

	for (size_t i = 0; takes && i < n; i++)
		takes[i] = is_asked_for(planner, libraries[i].class_) && !has_rival(planner, libraries, i, takes);
	return takes;
}

void graft_plan_choose_libraries(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;

	planner->takes = choose_planned_libraries(planner, inventory->libraries, inventory->n_libraries);
	planner->takes32 = choose_planned_libraries(planner, inventory->libraries32, inventory->n_libraries32);
}

bool graft_plan_takes(const struct graft_planner *planner, const struct graft_library *libraries, size_t i)
{
	const bool *takes = libraries == planner->inventory->libraries ? planner->takes : planner->takes32;

	return takes && takes[i]; /* NULL if memory was exhausted, which the plan's arena has recorded */
}

bool graft_plan_is_first(const struct graft_planner *planner, const struct graft_library *libraries, size_t i)
{
	if (!graft_plan_takes(planner, libraries, i))
		return false;
	for (size_t j = 0; j < i; j++) {
		if (graft_plan_takes(planner, libraries, j) && strcmp(libraries[j].soname, libraries[i].soname) == 0)
			return false;
	}
	return true;
}

const char *graft_plan_library_target(struct graft_planner *planner, const struct graft_library *library,
				      const char *directory)
{
	return planner->oci ? graft_plan_copy(planner, library->path)
			    : graft_plan_join(planner, directory, graft_path_name(library->path));
}

const char *graft_plan_library_directory(struct graft_planner *planner, const struct graft_library *library,
					 const char *directory)
{
	size_t length = (size_t)(graft_path_name(library->path) - library->path);

	if (!planner->oci)
		return directory;
	return graft_arena_strndup(planner->plan->arena, library->path, length > 1 ? length - 1 : length);
}

static void bind_libraries(struct graft_planner *planner, const struct graft_library *libraries, size_t n,
			   const char *directory, const char *rule, const char *bits)
{
	const char *noun = graft_arena_printf(planner->plan->arena, "libraries%s", bits);
	size_t left_out[GRAFT_CLASS_MAX] = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct graft_library *library = &libraries[i];
		struct graft_edit *edit;

		if (!is_asked_for(planner, library->class_)) {
			left_out[library->class_]++;
			continue;
		}
		if (!graft_plan_takes(planner, libraries, i)) {
			graft_plan_refuse(planner, "another library of that file name comes first", "library %s",
					  library->path);
			continue;
		}
		edit = graft_plan_edit(planner, GRAFT_EDIT_BIND, rule, "library of the driver for %s%s",
				       graft_class_names[library->class_], bits);
		edit->source = graft_plan_on_host(planner, planner->inventory->root, library->path);
		edit->target = graft_plan_library_target(planner, library, directory);
		edit->mode = 0644;
		edit->flags = GRAFT_FLAGS_FILE;
		edit->dispensable = graft_is_dispensable(edit->target);
	}
	if (left_out[GRAFT_CLASS_OTHER] > 0)
		graft_plan_refuse(planner,
				  planner->oci ? "their purpose is not known, and not every capability was asked for"
					       : "their purpose is not known",
				  "libraries%s: %zu of class %s", bits, left_out[GRAFT_CLASS_OTHER],
				  graft_class_names[GRAFT_CLASS_OTHER]);
	left_out[GRAFT_CLASS_OTHER] = 0;
	for (unsigned int i = 0; i < GRAFT_CLASS_MAX; i++)
		graft_plan_refuse_class(planner, noun, (enum graft_class)i, left_out[i],
					graft_class_capabilities((enum graft_class)i));
}

void graft_rule_libraries(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;

	bind_libraries(planner, inventory->libraries, inventory->n_libraries, planner->libs_dir, "library", "");
	if (graft_plan_has(planner, GRAFT_CAP_COMPAT32)) {
		bind_libraries(planner, inventory->libraries32, inventory->n_libraries32, planner->libs32_dir,
			       "library32", " (32 bit)");
		if (inventory->n_libraries32 == 0)
			graft_plan_refuse(planner, "the host has none for this driver", "libraries (32 bit)");
	} else if (inventory->n_libraries32 > 0) {
		graft_plan_refuse(planner, "the capability was not asked for",
				  "libraries (32 bit): %zu (needs compat32)", inventory->n_libraries32);
	}
}
