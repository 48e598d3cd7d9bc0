/* SPDX-License-Identifier: Apache-2.0 */
/*
 * podman: containers.conf and its drop-ins, and the hooks directory. Podman merges the files key by key, lists as a whole, so that the directories of
 * hooks are all named when one is added. It needs no restart: each call reads them.
 */
#include <string.h>

#include "base/cleanup.h"
#include "engine/toml_config.h"

#define NAME "podman"

static const char default_key[] = "engine.runtime";
static const char hooks_key[] = "engine.hooks_dir";
static const char standard_hooks[] = "/usr/share/containers/oci/hooks.d";

static const struct graft_engine_file *target_of(const struct graft_engine_request *request)
{
	return request->drop_in.path ? &request->drop_in : &request->config;
}

static int open_target(const struct graft_engine_request *request, struct graft_toml **ret_toml,
		       struct graft_error *err)
{
	const struct graft_engine_file *target = target_of(request);

	return engine_toml_open(NAME, target->path, &target->text,
				target == &request->drop_in ? ENGINE_DROP_IN_HEADER : "", ret_toml, err);
}

static int open_backup(const struct graft_engine_request *request, struct graft_toml **ret_backup,
		       struct graft_error *err)
{
	const struct graft_engine_file *target = target_of(request);

	return target->backup.bytes ? engine_toml_open(NAME, target->path, &target->backup, "", ret_backup, err) : 0;
}

static int configure(const struct graft_engine_request *request, struct graft_arena *arena,
		     struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	const char *const place[] = { "engine", "runtimes", request->runtime_name, NULL };
	const char *key = engine_key(arena, place), **paths = NULL;
	auto_toml struct graft_toml *toml = NULL;
	size_t n = 0;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (!key)
		return graft_fail_memory(err);
	if (open_target(request, &toml, err) < 0)
		return -1;
	if (graft_toml_get_strings(toml, key, arena, &paths, &n, err) < 0)
		return graft_wrap(err, "unable to update config");
	if ((n != 1 || strcmp(paths[0], request->runtime_path) != 0) &&
	    graft_toml_set_strings(toml, key, &request->runtime_path, 1, err) < 0)
		return graft_wrap(err, "unable to update config");
	if (engine_toml_default(toml, default_key, request->runtime_name, request->set_as_default, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_edit(toml, ret_changes, arena, target_of(request), NULL, err);
}

static int undo(const struct graft_engine_request *request, struct graft_arena *arena,
		struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	const char *const runtime[] = { "engine", "runtimes", request->runtime_name, NULL };
	static const char *const default_place[] = { "engine", "runtime", NULL };
	auto_toml struct graft_toml *toml = NULL, *backup = NULL;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (!target_of(request)->text.bytes)
		return 0;
	if (open_target(request, &toml, err) < 0 || open_backup(request, &backup, err) < 0)
		return -1;
	if (engine_toml_restore(toml, runtime, backup, arena, err) < 0 ||
	    engine_toml_restore_default(toml, default_place, request->runtime_name, backup, arena, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_undo(toml, backup, ret_changes, arena, target_of(request), NULL, err);
}

/* ---- by hook ---- */

static bool is_in(const char *const *items, size_t n, const char *item)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(items[i], item) == 0)
			return true;
	}
	return false;
}

/* The directories that are read without the drop-in: those of the top-level file, else the one that Podman has by itself. */
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
	    open_target(request, &toml, err) < 0)
		return -1;
	if (read_base(request, arena, &directories, &n, err) < 0 ||
	    graft_toml_get_strings(toml, hooks_key, arena, &directories, &n, err) < 0)
		return graft_wrap(err, "unable to update config");
	if (is_in(directories, n, directory))
		return 0;
	if (!graft_arena_push_string(arena, &directories, &n, directory))
		return graft_fail_memory(err);
	if (graft_toml_set_strings(toml, hooks_key, directories, n, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_edit(toml, ret_changes, arena, target_of(request), "Drop-in config:", err);
}

static bool is_same_list(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
	for (size_t i = 0; i < n_a && n_a == n_b; i++) {
		if (strcmp(a[i], b[i]) != 0)
			return false;
	}
	return n_a == n_b;
}

/* The list loses our directory, and goes when that leaves what would be read without it. */
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
	if (is_in(old, n_old, directory))
		return 0;
	if (graft_toml_remove_string(toml, hooks_key, directory, err) < 0 ||
	    graft_toml_get_strings(toml, hooks_key, arena, &left, &n, err) < 0)
		return -1;
	return n_old == 0 && is_same_list(left, n, base, n_base) ? engine_toml_restore(toml, place, backup, arena, err)
								 : 0;
}

/* Only as we write it: what was changed since is another's. */
static int remove_hook(const struct graft_engine_request *request, struct graft_arena *arena,
		       struct graft_engine_changes *changes, struct graft_error *err)
{
	const struct graft_engine_file *hook = &request->hook;
	struct graft_engine_edit ours = { .file = hook };

	if (graft_engine_oci_hook(request->hook_path, arena, &ours.text, err) < 0)
		return -1;
	if (graft_engine_edit_changes(&ours))
		return engine_note(changes, arena, ENGINE_WARNS, err, "%s was changed since, and stays", hook->path);
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
	if (!target_of(request)->text.bytes)
		return 0;
	if (open_target(request, &toml, err) < 0 || open_backup(request, &backup, err) < 0)
		return -1;
	if (restore_directories(request, toml, backup, directory, arena, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_undo(toml, backup, ret_changes, arena, target_of(request), "Drop-in config:", err);
}

const struct graft_engine graft_engine_podman = {
	.name = NAME,
	.config_path = "/etc/containers/containers.conf",
	.drop_in_path = "/etc/containers/containers.conf.d/99-nvidia.conf",
	.needs_absolute_path = true,
	.configure = configure,
	.undo = undo,
};
