/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_loader_cache: what the image's dynamic loader must know in the end: entries for
 * /etc/ld.so.cache or, for musl images, the search path file. In style NAMESPACE it is always
 * planned, even without entries: the existing stack refreshes the cache at each start, and images
 * rely on it.
 */
#include <string.h>

#include "plan/loader_search.h"
#include "plan/rules.h"

#define RULE "loader-cache"

/* Returns the soname link, or the library itself if there are no links. */
static const char *entry_path(struct graft_planner *planner, const struct graft_library *library, const char *directory)
{
	const char *folder = graft_plan_library_directory(planner, library, directory);

	if (graft_plan_is_disabled(planner, GRAFT_HOOK_SYMLINKS))
		return graft_plan_library_target(planner, library, directory);
	return folder ? graft_plan_join(planner, folder, library->soname) : NULL;
}

static void add_library_entries(struct graft_planner *planner, struct graft_edit *edit,
				const struct graft_library *libraries, size_t n, const char *directory)
{
	for (size_t i = 0; i < n; i++) {
		struct graft_ldcache_entry *entry;
		const char *folder;

		if (!graft_plan_is_first(planner, libraries, i))
			continue;
		entry = graft_arena_push(planner->plan->arena, &edit->entries, &edit->n_entries, sizeof(*entry));
		if (!entry)
			return;
		entry->soname = graft_plan_copy(planner, libraries[i].soname);
		entry->path = entry_path(planner, &libraries[i], directory);
		entry->abi_flags = libraries[i].abi_flags;
		folder = graft_plan_library_directory(planner, &libraries[i], directory);
		if (folder)
			(void)graft_loader_add_folder(planner->plan->arena, edit, folder);
	}
}

static bool has_libraries(const struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;

	for (size_t i = 0; i < inventory->n_libraries; i++) {
		if (graft_plan_takes(planner, inventory->libraries, i))
			return true;
	}
	return graft_plan_has(planner, GRAFT_CAP_COMPAT32) && inventory->n_libraries32 > 0;
}

/* Style OCI: nothing is done without need (SPEC runtime-and-hook 6.6), or if it is disabled. */
static bool is_cache_wanted(struct graft_planner *planner)
{
	if (graft_plan_is_disabled(planner, GRAFT_HOOK_LDCACHE)) {
		graft_plan_refuse(planner, "switched off by the administrator", "the loader's cache");
		return false;
	}
	return !planner->oci || has_libraries(planner);
}

void graft_rule_loader_cache(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;
	bool musl = graft_loader_is_musl(&planner->policy->image);
	struct graft_edit *edit;

	if (!is_cache_wanted(planner))
		return;
	edit = graft_plan_edit(planner, GRAFT_EDIT_LDCACHE, RULE, "%s",
			       musl ? "the image's loader (musl) finds libraries by this file"
				    : "the image's loader finds libraries by its cache");
	graft_plan_compat(planner, edit);
	add_library_entries(planner, edit, inventory->libraries, inventory->n_libraries, planner->libs_dir);
	if (graft_plan_has(planner, GRAFT_CAP_COMPAT32))
		add_library_entries(planner, edit, inventory->libraries32, inventory->n_libraries32,
				    planner->libs32_dir);
	graft_loader_search(planner->plan->arena, &planner->policy->image, edit);
}
