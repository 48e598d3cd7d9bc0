/* SPDX-License-Identifier: Apache-2.0 */
/* libraries: the driver's libraries, each bound under its own file name (SPEC libnvidia-container 9.4 steps 4 and 5). */
#include <string.h>

#include "plan/rules.h"

static bool is_asked_for(const struct graft_planner *planner, enum graft_class class_)
{
	/* SPEC 6.3: libdxcore goes into every container on WSL2, whatever it asked for. */
	return class_ == GRAFT_CLASS_WSL || graft_plan_has(planner, graft_class_capabilities(class_));
}

/* An earlier library of the list that the container gets and that has the same file name, or NULL. */
static const struct graft_library *rival(const struct graft_planner *planner, const struct graft_library *libraries,
					 size_t i)
{
	const char *name = graft_plan_base_name(libraries[i].path);

	for (size_t j = 0; j < i; j++) {
		if (is_asked_for(planner, libraries[j].class_) &&
		    strcmp(graft_plan_base_name(libraries[j].path), name) == 0)
			return &libraries[j];
	}
	return NULL;
}

bool graft_plan_takes(const struct graft_planner *planner, const struct graft_library *libraries, size_t i)
{
	return is_asked_for(planner, libraries[i].class_) && !rival(planner, libraries, i);
}

bool graft_plan_is_first(const struct graft_planner *planner, const struct graft_library *libraries, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (graft_plan_takes(planner, libraries, j) && strcmp(libraries[j].soname, libraries[i].soname) == 0)
			return false;
	}
	return graft_plan_takes(planner, libraries, i);
}

static void add_libraries(struct graft_planner *planner, const struct graft_library *libraries, size_t n,
			  const char *directory, const char *rule, const char *bits)
{
	size_t left_out[GRAFT_CLASS_MAX] = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct graft_library *library = &libraries[i];
		struct graft_edit *edit;

		if (!is_asked_for(planner, library->class_)) {
			left_out[library->class_]++;
			continue;
		}
		if (rival(planner, libraries, i)) {
			graft_plan_refuse(planner, "another library of that file name comes first", "library %s",
					  library->path);
			continue;
		}
		edit = graft_plan_edit(planner, GRAFT_EDIT_BIND, rule, "library of the driver for %s%s",
				       graft_class_names[library->class_], bits);
		edit->source = graft_plan_on_host(planner, planner->inventory->root, library->path);
		edit->target = graft_plan_join(planner, directory, graft_plan_base_name(library->path));
		edit->mode = 0644;
		edit->flags = GRAFT_FLAGS_FILE;
	}
	for (unsigned int i = 0; i < GRAFT_CLASS_MAX; i++) {
		const char *words = graft_plan_capability_words(planner, graft_class_capabilities((enum graft_class)i));

		if (left_out[i] > 0 && words)
			graft_plan_refuse(planner, "the capability was not asked for",
					  "libraries%s: %zu of class %s (needs %s)", bits, left_out[i],
					  graft_class_names[i], words);
	}
}

void graft_rule_libraries(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;

	add_libraries(planner, inventory->libraries, inventory->n_libraries, planner->libs_dir, "library", "");
	if (graft_plan_has(planner, GRAFT_CAP_COMPAT32)) {
		add_libraries(planner, inventory->libraries32, inventory->n_libraries32, planner->libs32_dir,
			      "library32", " (32 bit)");
		if (inventory->n_libraries32 == 0)
			graft_plan_refuse(planner, "the host has none of this driver", "libraries (32 bit)");
	} else if (inventory->n_libraries32 > 0) {
		graft_plan_refuse(planner, "the capability was not asked for",
				  "libraries (32 bit): %zu (needs compat32)", inventory->n_libraries32);
	}
}
