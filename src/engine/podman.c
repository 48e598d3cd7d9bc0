/* SPDX-License-Identifier: Apache-2.0 */
/*
 * podman: containers.conf and its drop-ins, and the hooks directory. Podman merges the files key by
 * key but replaces lists as a whole, so adding a directory of hooks requires the complete list. No
 * restart is needed: each call reads the files.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "engine/toml_config.h"

#define NAME "podman"

static const char default_key[] = "engine.runtime";
static const char hooks_key[] = "engine.hooks_dir";
static const char standard_hooks[] = "/usr/share/containers/oci/hooks.d";

static int configure_podman(const struct graft_engine_request *request, struct graft_arena *arena,
			    struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	const char *const place[] = { "engine", "runtimes", request->runtime_name, NULL };
	const char *key = engine_key(arena, place), **paths = NULL;
	auto_toml struct graft_toml *toml = NULL;
	size_t n = 0;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (!key)
		return graft_fail_memory(err);
	if (engine_toml_open_target(NAME, request, &toml, err) < 0)
		return -1;
	if (graft_toml_get_strings(toml, key, arena, &paths, &n, err) < 0)
		return graft_wrap(err, "unable to update config");
	if ((n != 1 || strcmp(paths[0], request->runtime_path) != 0) &&
	    graft_toml_set_strings(toml, key, &request->runtime_path, 1, err) < 0)
		return graft_wrap(err, "unable to update config");
	if (engine_toml_default(toml, default_key, request->runtime_name, request->set_as_default, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_edit(toml, ret_changes, arena, engine_toml_target(request), NULL, err);
}

static int undo_podman(const struct graft_engine_request *request, struct graft_arena *arena,
		       struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	const char *const runtime[] = { "engine", "runtimes", request->runtime_name, NULL };
	static const char *const default_place[] = { "engine", "runtime", NULL };
	auto_toml struct graft_toml *toml = NULL, *backup = NULL;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (!engine_toml_target(request)->text.bytes)
		return 0;
	if (engine_toml_open_target(NAME, request, &toml, err) < 0 ||
	    engine_toml_open_backup(NAME, engine_toml_target(request), &backup, err) < 0)
		return -1;
	if (engine_toml_restore(toml, runtime, backup, arena, err) < 0 ||
	    engine_toml_restore_default(toml, default_place, request->runtime_name, backup, arena, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_undo(toml, backup, ret_changes, arena, engine_toml_target(request), NULL, err);
}

/* ---- by hook ---- */

/*
 * Reads the directories that are used without the drop-in: those of the top-level file, or Podman's
 * default.
 */
static int read_base(const struct graft_engine_request *request, struct graft_arena *arena,
		     const char ***ret_directories, size_t *ret_n, struct graft_error *err)
{
	auto_toml struct graft_toml *config = NULL;

	*ret_directories = NULL;
	*ret_n = 0;
	if (request->drop_in.path) {
		if (engine_toml_open(NAME, request->config.path, &request->config.text, "", &config, err) < 0 ||
		    graft_toml_get_strings(config, hooks_key, arena, ret_directories, ret_n, err) < 0)
			return -1;
	}
	if ((!config || !graft_toml_has(config, hooks_key)) &&
	    !graft_arena_push_string(arena, ret_directories, ret_n, standard_hooks))
		return graft_fail_memory(err);
	return 0;
}

int graft_engine_podman_hook(const struct graft_engine_request *request, struct graft_arena *arena,
			     struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	const char *directory = engine_directory_of(request->hook.path, arena), **directories = NULL;
	auto_toml struct graft_toml *toml = NULL;
	struct graft_engine_text text;
	size_t n = 0;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (!directory)
		return graft_fail_memory(err);
	if (graft_engine_oci_hook(request->hook_path, arena, &text, err) < 0 ||
	    engine_edit(ret_changes, arena, &request->hook, "OCI hook:", text.bytes, text.length, err) < 0 ||
	    engine_toml_open_target(NAME, request, &toml, err) < 0)
		return -1;
	if (read_base(request, arena, &directories, &n, err) < 0 ||
	    graft_toml_get_strings(toml, hooks_key, arena, &directories, &n, err) < 0)
		return graft_wrap(err, "unable to update config");
	if (graft_is_in(directories, n, directory))
		return 0;
	if (!graft_arena_push_string(arena, &directories, &n, directory))
		return graft_fail_memory(err);
	if (graft_toml_set_strings(toml, hooks_key, directories, n, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_edit(toml, ret_changes, arena, engine_toml_target(request), "Drop-in config:", err);
}

static bool is_same_list(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
	for (size_t i = 0; i < n_a && n_a == n_b; i++) {
		if (strcmp(a[i], b[i]) != 0)
			return false;
	}
	return n_a == n_b;
}

/*
 * Removes our directory from the list, and the list itself if the rest is what would be used
 * without it.
 */
static int restore_directories(const struct graft_engine_request *request, struct graft_toml *toml,
			       const struct graft_toml *backup, const char *directory, struct graft_arena *arena,
			       struct graft_error *err)
{
	static const char *const place[] = { "engine", "hooks_dir", NULL };
	const char **left = NULL, **old = NULL, **base;
	size_t n = 0, n_old = 0, n_base;

	if (read_base(request, arena, &base, &n_base, err) < 0 ||
	    (backup && graft_toml_get_strings(backup, hooks_key, arena, &old, &n_old, err) < 0))
		return -1;
	if (graft_is_in(old, n_old, directory))
		return 0;
	if (graft_toml_remove_string(toml, hooks_key, directory, err) < 0 ||
	    graft_toml_get_strings(toml, hooks_key, arena, &left, &n, err) < 0)
		return -1;
	return n_old == 0 && is_same_list(left, n, base, n_base) ? engine_toml_restore(toml, place, backup, arena, err)
								 : 0;
}

/* Removes the file only if it is exactly as we write it: a changed file belongs to its editor. */
static int remove_hook(const struct graft_engine_request *request, struct graft_arena *arena,
		       struct graft_engine_changes *changes, struct graft_error *err)
{
	const struct graft_engine_file *hook = &request->hook;
	struct graft_engine_edit ours = { .file = hook };

	if (graft_engine_oci_hook(request->hook_path, arena, &ours.text, err) < 0)
		return -1;
	if (graft_engine_edit_changes(&ours))
		return engine_note(changes, arena, ENGINE_WARNS, err, "%s has been changed since, so it is kept",
				   hook->path);
	return engine_edit(changes, arena, hook, "OCI hook:", hook->backup.bytes, hook->backup.length, err);
}

int graft_engine_podman_unhook(const struct graft_engine_request *request, struct graft_arena *arena,
			       struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	const struct graft_engine_file *hook = &request->hook;
	const char *directory = engine_directory_of(hook->path, arena);
	auto_toml struct graft_toml *toml = NULL, *backup = NULL;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (!directory)
		return graft_fail_memory(err);
	if (hook->text.bytes && remove_hook(request, arena, ret_changes, err) < 0)
		return -1;
	if (!engine_toml_target(request)->text.bytes)
		return 0;
	if (engine_toml_open_target(NAME, request, &toml, err) < 0 ||
	    engine_toml_open_backup(NAME, engine_toml_target(request), &backup, err) < 0)
		return -1;
	if (restore_directories(request, toml, backup, directory, arena, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_undo(toml, backup, ret_changes, arena, engine_toml_target(request), "Drop-in config:", err);
}

const struct graft_engine graft_engine_podman = {
	.name = NAME,
	.config_path = "/etc/containers/containers.conf",
	.drop_in_path = "/etc/containers/containers.conf.d/99-nvidia.conf",
	.needs_absolute_path = true,
	.configure = configure_podman,
	.undo = undo_podman,
};
