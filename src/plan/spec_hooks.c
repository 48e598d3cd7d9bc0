/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec_hooks: recognises calls of our hooks, and hooks without an environment. Does not know what
 * the hooks do.
 */
#include "plan/spec_hooks.h"

#include <string.h>

#include "base/path.h"
#include "base/strings.h"
#include "plan/planner.h"

#define PROGRAM "nvidia-cdi-hook"
#define TOOLKIT "nvidia-ctk"

/*
 * A variable that all containers get from a specification of nvidia-ctk, so that no prestart hook
 * does the work again.
 */
#define MARK "NVIDIA_VISIBLE_DEVICES=void"

static bool is_program_named(const char *path, const char *name)
{
	return strcmp(graft_path_name(path), name) == 0;
}

const char *graft_spec_hook_variable(const char *path)
{
	return is_program_named(path, PROGRAM) || is_program_named(path, TOOLKIT) ? GRAFT_HOOK_VARIABLE
										  : GRAFT_HOOK_PATH;
}

/* A hook that only a newer program has is left to that program. */
bool graft_is_hook_name(const char *name)
{
	return graft_is_in(graft_hook_names, GRAFT_HOOK_BITS, name) || strcmp(name, "chmod") == 0 ||
	       strcmp(name, GRAFT_CDI_FILES_HOOK) == 0 || strcmp(name, GRAFT_SEQUENCE_HOOK) == 0;
}

bool graft_spec_hook_is_ours(const struct graft_cdi_hook *hook, size_t *ret_first)
{
	size_t first = 1;

	if (graft_cdi_hook_is_of_image(hook))
		return false;
	if (is_program_named(hook->path, TOOLKIT)) {
		if (hook->n_args < 2 || strcmp(hook->args[1], "hook") != 0)
			return false;
		first = 2;
	} else if (!is_program_named(hook->path, PROGRAM)) {
		return false;
	}
	*ret_first = first;
	return hook->n_args > first && graft_is_hook_name(hook->args[first]);
}

static void take_over(const char *program, struct graft_arena *arena, struct graft_cdi_hook *hook, size_t first)
{
	const struct graft_cdi_hook whole = *hook;

	hook->path = program;
	hook->args = NULL;
	hook->n_args = 0;
	/* If memory is exhausted, the arena records it. */
	(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, graft_path_name(program));
	for (size_t i = first; i < whole.n_args; i++)
		(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, whole.args[i]);
}

int graft_spec_hooks_mend(const char *program, struct graft_arena *arena, struct graft_cdi_edits *edits,
			  struct graft_error *err)
{
	struct graft_cdi_hook *hooks = graft_arena_list(arena, edits->n_hooks, sizeof(*hooks));

	for (size_t i = 0; hooks && i < edits->n_hooks; i++) {
		size_t first;

		hooks[i] = edits->hooks[i];
		if (program && is_program_named(hooks[i].path, TOOLKIT) && graft_spec_hook_is_ours(&hooks[i], &first))
			take_over(program, arena, &hooks[i], first);
		if (hooks[i].n_env == 0 && !graft_cdi_hook_is_of_image(&hooks[i])) {
			hooks[i].env = NULL;
			(void)graft_arena_push_string(arena, &hooks[i].env, &hooks[i].n_env,
						      graft_spec_hook_variable(hooks[i].path));
		}
	}
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	edits->hooks = hooks;
	return 0;
}

int graft_spec_hooks_mend_all(const char *program, struct graft_arena *arena, struct graft_cdi_spec *spec,
			      struct graft_error *err)
{
	if (graft_spec_hooks_mend(program, arena, &spec->edits, err) < 0)
		return -1;
	for (size_t i = 0; i < spec->n_devices; i++)
		if (graft_spec_hooks_mend(program, arena, &spec->devices[i].edits, err) < 0)
			return -1;
	return 0;
}

static const char *find_toolkit(const struct graft_cdi_edits *edits)
{
	size_t first;

	for (size_t i = 0; i < edits->n_hooks; i++)
		if (is_program_named(edits->hooks[i].path, TOOLKIT) &&
		    graft_spec_hook_is_ours(&edits->hooks[i], &first))
			return edits->hooks[i].path;
	return NULL;
}

const char *graft_spec_hooks_find_toolkit(const struct graft_cdi_spec *spec)
{
	const char *found = find_toolkit(&spec->edits);

	for (size_t i = 0; i < spec->n_devices && !found; i++)
		found = find_toolkit(&spec->devices[i].edits);
	return found;
}

static bool has_only_hooks_of_ours(const struct graft_cdi_edits *edits)
{
	size_t first;

	for (size_t i = 0; i < edits->n_hooks; i++)
		if (!graft_spec_hook_is_ours(&edits->hooks[i], &first))
			return false;
	return true;
}

/* The existing stack also writes management.nvidia.com, and the name given with --vendor. */
static bool is_vendor_of_toolkit(const char *vendor)
{
	static const char name[] = "nvidia.com";
	size_t length = strlen(vendor), n = sizeof(name) - 1;

	return length >= n && strcmp(vendor + length - n, name) == 0 && (length == n || vendor[length - n - 1] == '.');
}

bool graft_spec_is_of_toolkit(const struct graft_cdi_spec *spec)
{
	bool marked = false;

	for (size_t i = 0; i < spec->edits.n_env && !marked; i++)
		marked = strcmp(spec->edits.env[i], MARK) == 0;
	if (!marked || !is_vendor_of_toolkit(spec->vendor) || !has_only_hooks_of_ours(&spec->edits))
		return false;
	for (size_t i = 0; i < spec->n_devices; i++)
		if (!has_only_hooks_of_ours(&spec->devices[i].edits))
			return false;
	return true;
}
