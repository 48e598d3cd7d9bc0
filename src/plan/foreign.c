/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign: separates edits to keep from edits to drop, and resolves dropped links in entries of the
 * loader's cache.
 */
#include "plan/plan.h"

#include <string.h>

#include "base/path.h"

#define MAX_LINKS 8

static const char why[] = "it would lie on another mount than the container's root";

static bool is_in(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/');
}

static bool is_foreign_edit(const struct graft_edit *edit, const char *const *directories, size_t n)
{
	const char *path = NULL;

	if (edit->kind == GRAFT_EDIT_SYMLINK || edit->kind == GRAFT_EDIT_FILE)
		path = edit->target;
	else if (edit->kind == GRAFT_EDIT_LDCACHE)
		path = edit->musl_path_file ? edit->musl_path_file : "/etc/ld.so.cache";
	for (size_t i = 0; path && i < n; i++)
		if (is_in(path, directories[i]))
			return true;
	return false;
}

static bool refuse_foreign_edit(struct graft_plan *plan, const struct graft_edit *edit, struct graft_arena *arena)
{
	struct graft_refusal *refusals = graft_arena_list(arena, plan->n_refusals + 1, sizeof(*refusals));
	const char *what = graft_arena_printf(arena, "%s %s", graft_edit_names[edit->kind],
					      edit->target ? edit->target : "/etc/ld.so.cache");

	if (!refusals || !what)
		return false;
	if (plan->n_refusals > 0)
		memcpy(refusals, plan->refusals, plan->n_refusals * sizeof(*refusals));
	refusals[plan->n_refusals++] = (struct graft_refusal){ what, why };
	plan->refusals = refusals;
	return true;
}

/*
 * Returns the file that a dropped link at `path` points to; NULL if there is no such link, or it
 * points to another directory.
 */
static const char *find_file_beside_link(const struct graft_plan *plan, const char *const *directories, size_t n,
					 const char *path, struct graft_arena *arena)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind != GRAFT_EDIT_SYMLINK || !edit->content || strchr(edit->content, '/') ||
		    strcmp(edit->target, path) != 0 || !is_foreign_edit(edit, directories, n))
			continue;
		return graft_arena_join(arena, path, (size_t)(graft_path_name(path) - path) - 1, edit->content);
	}
	return NULL;
}

static bool redirect_entries(const struct graft_plan *plan, const char *const *directories, size_t n,
			     struct graft_edit *edit, struct graft_arena *arena)
{
	if (edit->n_entries == 0)
		return true;
	edit->entries = graft_arena_memdup(arena, edit->entries, edit->n_entries * sizeof(*edit->entries));
	for (size_t i = 0; edit->entries && i < edit->n_entries; i++) {
		const char *file = find_file_beside_link(plan, directories, n, edit->entries[i].path, arena);

		/* A link may point to another link, and specifications may define a loop. */
		for (int links = 0; file && links < MAX_LINKS; links++) {
			edit->entries[i].path = file;
			file = find_file_beside_link(plan, directories, n, file, arena);
		}
	}
	return edit->entries != NULL;
}

const struct graft_plan *graft_plan_without(const struct graft_plan *plan, const char *const *directories, size_t n,
					    struct graft_arena *arena)
{
	struct graft_plan *rest;
	bool any = false;

	for (size_t i = 0; i < plan->n_edits; i++)
		any = any || is_foreign_edit(&plan->edits[i], directories, n);
	if (!any)
		return plan;
	rest = graft_arena_memdup(arena, plan, sizeof(*plan));
	if (!rest)
		return NULL;
	rest->edits = NULL;
	rest->n_edits = 0;
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		struct graft_edit *kept;

		if (is_foreign_edit(edit, directories, n)) {
			if (!refuse_foreign_edit(rest, edit, arena))
				return NULL;
			continue;
		}
		kept = graft_arena_push(arena, &rest->edits, &rest->n_edits, sizeof(*kept));
		if (!kept)
			return NULL;
		*kept = *edit;
		if (edit->kind == GRAFT_EDIT_LDCACHE && !redirect_entries(plan, directories, n, kept, arena))
			return NULL;
	}
	return rest;
}
