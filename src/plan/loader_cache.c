/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cache: what the image's dynamic loader must know in the end: entries for /etc/ld.so.cache, or for musl images the
 * search path file. Always planned, even with nothing to add: the existing stack refreshes the cache at each start, and images rely on it.
 */
#include <string.h>

#include "plan/rules.h"

#define RULE "loader-cache"
/* musl's search path while there is no file that says otherwise */
#define MUSL_DEFAULT_PATH "/lib\n/usr/local/lib\n/usr/lib"

static bool is_same_directory(const char *a, size_t a_length, const char *b)
{
	size_t b_length = strlen(b);

	while (a_length > 1 && a[a_length - 1] == '/')
		a_length--;
	while (b_length > 1 && b[b_length - 1] == '/')
		b_length--;
	return a_length == b_length && memcmp(a, b, a_length) == 0;
}

static void add_folder(struct graft_planner *planner, struct graft_edit *edit, const char *folder)
{
	for (size_t i = 0; i < edit->n_folders; i++) {
		if (is_same_directory(folder, strlen(folder), edit->folders[i]))
			return;
	}
	(void)graft_arena_push_string(planner->plan->arena, &edit->folders, &edit->n_folders, folder);
}

static void add_entries(struct graft_planner *planner, struct graft_edit *edit, const struct graft_library *libraries,
			size_t n, const char *directory)
{
	for (size_t i = 0; i < n; i++) {
		struct graft_ldcache_entry *entry;

		if (!graft_plan_is_first(planner, libraries, i))
			continue;
		entry = graft_arena_push(planner->plan->arena, &edit->entries, &edit->n_entries, sizeof(*entry));
		if (!entry)
			return;
		entry->soname = graft_plan_copy(planner, libraries[i].soname);
		entry->path = graft_plan_join(planner, directory, libraries[i].soname);
		entry->abi_flags = libraries[i].abi_flags;
		add_folder(planner, edit, directory);
	}
}

static void note_missing_folders(struct graft_planner *planner, struct graft_edit *edit)
{
	const struct graft_image *image = &planner->policy->image;

	for (size_t i = 0; i < edit->n_folders; i++) {
		bool searched = false;

		for (size_t j = 0; j < image->n_loader_dirs && !searched; j++)
			searched = is_same_directory(edit->folders[i], strlen(edit->folders[i]), image->loader_dirs[j]);
		if (!searched)
			(void)graft_arena_push_string(planner->plan->arena, &edit->missing_folders,
						      &edit->n_missing_folders, edit->folders[i]);
	}
}

/* Whether a path list, separated by colons or newlines as musl reads it, holds a directory. */
static bool path_has(const char *list, const char *directory)
{
	for (const char *at = list; *at != '\0';) {
		size_t length = strcspn(at, ":\n");

		if (length > 0 && is_same_directory(at, length, directory))
			return true;
		at += length;
		at += strspn(at, ":\n");
	}
	return false;
}

/* The image's own directories come first and stay as they are: in them are the libraries that its programs were built with. */
static void extend_musl_path(struct graft_planner *planner, struct graft_edit *edit)
{
	const struct graft_image *image = &planner->policy->image;
	const char *text = image->musl_path ? image->musl_path : MUSL_DEFAULT_PATH;

	for (size_t i = 0; i < edit->n_folders && text; i++) {
		size_t length = strlen(text);

		if (path_has(text, edit->folders[i]))
			continue;
		while (length > 0 && text[length - 1] == '\n')
			length--;
		text = graft_arena_printf(planner->plan->arena, "%.*s%s%s\n", (int)length, text, length > 0 ? "\n" : "",
					  edit->folders[i]);
	}
	edit->musl_path_file = graft_plan_copy(planner, image->musl_path_file);
	edit->musl_path = graft_plan_copy(planner, text);
	edit->entries = NULL;
	edit->n_entries = 0;
}

void graft_rule_loader_cache(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;
	const struct graft_image *image = &planner->policy->image;
	bool musl = image->libc == GRAFT_LIBC_MUSL && image->musl_path_file;
	struct graft_edit *edit = graft_plan_edit(planner, GRAFT_EDIT_LDCACHE, RULE, "%s",
						  musl ? "the image's loader (musl) finds libraries by this file"
						       : "the image's loader finds libraries by its cache");

	graft_plan_compat(planner, edit);
	add_entries(planner, edit, inventory->libraries, inventory->n_libraries, planner->libs_dir);
	if (graft_plan_has(planner, GRAFT_CAP_COMPAT32))
		add_entries(planner, edit, inventory->libraries32, inventory->n_libraries32, planner->libs32_dir);
	if (musl)
		extend_musl_path(planner, edit);
	else
		note_missing_folders(planner, edit);
}
