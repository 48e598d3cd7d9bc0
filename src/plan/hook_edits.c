/* SPDX-License-Identifier: Apache-2.0 */
/* hook_edits: one or two edits for each hook. */
#include "plan/hook_edits.h"

#include <inttypes.h>
#include <string.h>

#include "host/discover.h"
#include "plan/rules.h"

#define SEPARATOR "::"

int graft_hook_read_link(const char *spec, struct graft_arena *arena, struct graft_hook_link *ret_link,
			 struct graft_error *err)
{
	const char *separator = strstr(spec, SEPARATOR);
	const char *path = separator ? separator + strlen(SEPARATOR) : NULL;

	if (!path || strstr(path, SEPARATOR))
		return graft_fail(err, GRAFT_INVALID, 0, "invalid symlink specification %s", spec);
	ret_link->says = graft_arena_strndup(arena, spec, (size_t)(separator - spec));
	ret_link->path = path[0] == '/' ? graft_arena_strdup(arena, path) : graft_arena_printf(arena, "/%s", path);
	return ret_link->says && ret_link->path ? 0 : graft_fail_memory(err);
}

int graft_hook_read_file(const char *spec, struct graft_arena *arena, struct graft_hook_file *ret_file,
			 struct graft_error *err)
{
	const char *separator = strstr(spec, SEPARATOR);
	const char *path = separator ? separator + strlen(SEPARATOR) : spec;

	if (spec[0] != '/' || path[0] != '/' || strstr(path, SEPARATOR))
		return graft_fail(err, GRAFT_INVALID, 0, "invalid file specification %s", spec);
	ret_file->source = graft_arena_strndup(arena, spec, separator ? (size_t)(separator - spec) : strlen(spec));
	ret_file->path = graft_arena_strdup(arena, path);
	return ret_file->source && ret_file->path ? 0 : graft_fail_memory(err);
}

static struct graft_edit *add_hook_edit(struct graft_plan *plan, enum graft_edit_kind kind, const char *target,
					const char *rule, const char *why)
{
	struct graft_edit *edit = graft_arena_push(plan->arena, &plan->edits, &plan->n_edits, sizeof(*edit));

	if (!edit)
		return NULL;
	edit->kind = kind;
	edit->target = graft_arena_strdup(plan->arena, target);
	edit->rule = rule;
	edit->why = why;
	return edit->target ? edit : NULL;
}

bool graft_hook_add_link(struct graft_plan *plan, const struct graft_hook_link *link)
{
	struct graft_edit *edit = add_hook_edit(plan, GRAFT_EDIT_SYMLINK, link->path, "spec-link",
						"the specification asks for it");

	if (!edit)
		return false;
	edit->content = graft_arena_strdup(plan->arena, link->says);
	edit->conflict = GRAFT_CONFLICT_OVERWRITE;
	return edit->content != NULL;
}

bool graft_hook_add_file(struct graft_plan *plan, const struct graft_hook_file *file)
{
	struct graft_edit *edit = add_hook_edit(plan, GRAFT_EDIT_BIND, file->path, "spec-file",
						"the specification asks for it");

	if (!edit)
		return false;
	edit->source = graft_arena_strdup(plan->arena, file->source);
	edit->type = GRAFT_SOURCE_FILE;
	edit->mode = 0644;
	edit->flags = GRAFT_FLAGS_FILE;
	return edit->source != NULL;
}

bool graft_hook_add_params(struct graft_plan *plan, const char *text)
{
	struct graft_edit *edit = add_hook_edit(plan, GRAFT_EDIT_COVER, GRAFT_PARAMS_PATH, "driver-params",
						"keeps the driver's libraries from creating device nodes");

	if (!edit)
		return false;
	edit->content = graft_arena_strdup(plan->arena, text);
	edit->mode = 0444;
	edit->flags = GRAFT_FLAGS_PROC;
	return edit->content != NULL;
}

const char *graft_hook_profile_text(struct graft_arena *arena, uint64_t mask)
{
	return graft_arena_printf(arena,
				  "{\"profiles\":[{\"name\":\"_container_\",\"settings\":"
				  "[\"EGLVisibleDGPUDevices\",0x%" PRIx64
				  "]}],\"rules\":[{\"pattern\":[],\"profile\":\"_container_\"}]}",
				  mask);
}

bool graft_hook_add_profile(struct graft_plan *plan, uint64_t mask)
{
	static const char rule[] = "application-profile", why[] = "keeps EGL from showing GPUs that were not selected";
	struct graft_edit *edit = add_hook_edit(plan, GRAFT_EDIT_DIRECTORY, GRAFT_PROFILE_DIRECTORY, rule, why);

	if (!edit)
		return false;
	edit->mode = 0555;
	edit = add_hook_edit(plan, GRAFT_EDIT_FILE, GRAFT_PROFILE_FILE, rule, why);
	if (!edit)
		return false;
	edit->content = graft_hook_profile_text(plan->arena, mask);
	edit->mode = 0444;
	return edit->content != NULL;
}
