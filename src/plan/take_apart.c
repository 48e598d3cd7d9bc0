/* SPDX-License-Identifier: Apache-2.0 */
/*
 * take_apart: splits joined hooks, and turns files that a hook mounts into mounts
 * (docs/decisions/0034-driver-tree.md), so that a caller that applies them itself finds both where
 * specifications have always had them.
 */
#include <string.h>

#include "plan/hook_edits.h"
#include "plan/spec_hooks.h"

/* As in specifications without such hooks (apply/oci/plan_to_edits.c). */
static const char *file_options[] = { "ro", "nosuid", "nodev", "rbind", "rprivate" };

/* The index of the first word of a sequence of our hooks, or of mount-files; 0 for others. */
static size_t joined_words(const struct graft_cdi_hook *hook)
{
	size_t first;

	if (hook->has_timeout || strcmp(hook->stage, "createContainer") != 0 || !graft_spec_hook_is_ours(hook, &first))
		return 0;
	if (strcmp(hook->args[first], GRAFT_SEQUENCE_HOOK) == 0)
		return first + 1 < hook->n_args && hook->args[first + 1][0] != '-' ? first + 1 : 0;
	return strcmp(hook->args[first], GRAFT_CDI_FILES_HOOK) == 0 ? first : 0;
}

/* Adds the mounts of mount-files; false if a word is not understood. */
static bool add_file_mounts(const char *const *words, size_t n, struct graft_arena *arena,
			    struct graft_cdi_edits *edits)
{
	struct graft_error why = { .status = GRAFT_OK };
	size_t before = edits->n_mounts;

	for (size_t i = 1; i < n; i += 2) {
		struct graft_hook_file file;
		struct graft_cdi_mount *mount;

		if (strcmp(words[i], GRAFT_CDI_FILE_OPTION) != 0 || i + 1 == n || strchr(words[i + 1], ',') ||
		    graft_hook_read_file(words[i + 1], arena, &file, &why) < 0) {
			edits->n_mounts = before;
			return false;
		}
		mount = graft_arena_push(arena, &edits->mounts, &edits->n_mounts, sizeof(*mount));
		if (mount)
			*mount = (struct graft_cdi_mount){ .host_path = file.source,
							   .container_path = file.path,
							   .options = file_options,
							   .n_options = sizeof(file_options) / sizeof(*file_options) };
	}
	return true;
}

/* Adds one hook with these words: `words[0]` is its name. */
static void add_one_hook(const struct graft_cdi_hook *whole, size_t n_before, const char *const *words, size_t n,
			 struct graft_arena *arena, struct graft_cdi_edits *edits)
{
	struct graft_cdi_hook *hook = graft_arena_push(arena, &edits->hooks, &edits->n_hooks, sizeof(*hook));

	if (!hook)
		return;
	*hook = *whole;
	hook->args = NULL;
	hook->n_args = 0;
	/* The program's name and, for nvidia-ctk, "hook". */
	for (size_t i = 0; i < n_before; i++)
		(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, whole->args[i]);
	for (size_t i = 0; i < n; i++)
		(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, words[i]);
}

static void take_hook_apart(const struct graft_cdi_hook *hook, size_t first, struct graft_arena *arena,
			    struct graft_cdi_edits *edits)
{
	size_t n_before = strcmp(hook->args[first - 1], GRAFT_SEQUENCE_HOOK) == 0 ? first - 1 : first, n;

	for (size_t at = first; at < hook->n_args; at += n + 1) {
		const char *const *words = hook->args + at;

		for (n = 0; at + n < hook->n_args && strcmp(words[n], GRAFT_SEQUENCE_THEN) != 0;)
			n++;
		if (n > 0 && strcmp(words[0], GRAFT_CDI_FILES_HOOK) == 0 && add_file_mounts(words, n, arena, edits))
			continue;
		add_one_hook(hook, n_before, words, n, arena, edits);
	}
}

static void take_edits_apart(struct graft_arena *arena, struct graft_cdi_edits *edits)
{
	const struct graft_cdi_edits whole = *edits;

	edits->hooks = NULL;
	edits->n_hooks = 0;
	/* Lists as read are not appended to. */
	edits->mounts = NULL;
	edits->n_mounts = 0;
	for (size_t i = 0; i < whole.n_mounts; i++) {
		struct graft_cdi_mount *mount = graft_arena_push(arena, &edits->mounts, &edits->n_mounts,
								 sizeof(*mount));

		if (mount)
			*mount = whole.mounts[i];
	}
	for (size_t i = 0; i < whole.n_hooks; i++) {
		size_t first = joined_words(&whole.hooks[i]);
		struct graft_cdi_hook *hook;

		if (first > 0) {
			take_hook_apart(&whole.hooks[i], first, arena, edits);
			continue;
		}
		hook = graft_arena_push(arena, &edits->hooks, &edits->n_hooks, sizeof(*hook));
		if (hook)
			*hook = whole.hooks[i];
	}
}

static bool has_joined(const struct graft_cdi_edits *edits)
{
	for (size_t i = 0; i < edits->n_hooks; i++)
		if (joined_words(&edits->hooks[i]) > 0)
			return true;
	return false;
}

int graft_spec_hooks_take_apart(struct graft_arena *arena, struct graft_cdi_spec *spec, struct graft_error *err)
{
	if (has_joined(&spec->edits))
		take_edits_apart(arena, &spec->edits);
	for (size_t i = 0; i < spec->n_devices; i++)
		if (has_joined(&spec->devices[i].edits))
			take_edits_apart(arena, &spec->devices[i].edits);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
