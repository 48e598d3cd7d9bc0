/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containerd: config.toml with the CRI plugin, versions 1 to 3, and its drop-ins (SPEC ctk-and-cdi
 * 1.1 "containerd").
 *
 * A drop-in has the version of the top-level file, since containerd reads both as one version: a
 * newer version in the drop-in stops it. containerd before 2.1 replaces a plugin's section by that
 * of the file read last, so its drop-in contains a copy of the section; later releases merge key by
 * key, and their drop-in contains our keys only. Version 1 does not support drop-ins, so its
 * top-level file is edited.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "engine/toml_config.h"

#define NAME "containerd"

struct work {
	const struct graft_engine_request *request;
	struct graft_arena *arena;
	struct graft_engine_changes *changes;
	struct graft_error *err;
	struct graft_toml *root, *source, *drop_in; /* owned; source is root if the engine printed no configuration */
	int64_t version, source_version;
	const char *plugin, *source_plugin; /* the table that contains "containerd.runtimes" */
};

static void containerd_work_done(struct work *work)
{
	if (work->source != work->root)
		graft_toml_free(work->source);
	graft_toml_free(work->root);
	graft_toml_free(work->drop_in);
}
#define auto_work __attribute__((cleanup(containerd_work_done)))

static const char *plugin_of(int64_t version)
{
	return version == 1 ? "cri" : version == 2 ? "io.containerd.grpc.v1.cri" : "io.containerd.cri.v1.runtime";
}

static bool has_engine_file(const struct graft_engine_file *file)
{
	return file->path != NULL;
}

/*
 * Reads the version that a document is written in, or 0 if nothing in it depends on a version.
 * Without `version` it is 1, by containerd's own rule, if the document has keys whose meaning
 * depends on it.
 */
static int read_version(const struct graft_toml *toml, int64_t *ret_version, struct graft_error *err)
{
	static const char *const versioned[] = { "plugins", "disabled_plugins", "required_plugins" };

	*ret_version = 0;
	if (graft_toml_get_integer(toml, "version", ret_version, err) < 0)
		return graft_wrap(err, "failed to parse config version: unsupported type for version field");
	if (*ret_version < 0)
		return graft_toml_refuse(toml, "version", "1, 2, 3", err);
	for (size_t i = 0; *ret_version == 0 && i < GRAFT_COUNT(versioned); i++) {
		if (graft_toml_has(toml, versioned[i]))
			*ret_version = 1;
	}
	return 0;
}

bool graft_engine_containerd_merges_deeply(const char *version_line)
{
	const char *word = version_line, *dot;
	long major, minor;

	/* "containerd github.com/containerd/containerd/v2 v2.1.0 REVISION" */
	for (int i = 0; i < 2; i++)
		word += strcspn(word, " ") + strspn(word + strcspn(word, " "), " ");
	word += strspn(word, "v");
	major = strtol(word, NULL, 10);
	dot = strchr(word, '.');
	minor = dot ? strtol(dot + 1, NULL, 10) : 0;
	return major > 2 || (major == 2 && minor >= 1);
}

/* { "plugins", PLUGIN, "containerd", LAST... } */
#define PLACE(plugin, ...)    ((const char *const[]){ "plugins", plugin, ##__VA_ARGS__, NULL })
#define DEFAULT_NAME(plugin)  PLACE(plugin, "containerd", "default_runtime_name")
#define DEFAULT_TABLE(plugin) PLACE(plugin, "containerd", "default_runtime")
#define RUNTIMES(plugin)      PLACE(plugin, "containerd", "runtimes")

static int open_documents(struct work *work)
{
	const struct graft_engine_request *request = work->request;

	if (engine_toml_open(NAME, request->config.path, &request->config.text, "", &work->root, work->err) < 0)
		return -1;
	work->source = work->root;
	if (request->source.bytes &&
	    engine_toml_open(NAME, request->source_name, &request->source, "", &work->source, work->err) < 0)
		return -1;
	if (has_engine_file(&request->drop_in) &&
	    engine_toml_open(NAME, request->drop_in.path, &request->drop_in.text, ENGINE_DROP_IN_HEADER, &work->drop_in,
			     work->err) < 0)
		return -1;
	return 0;
}

static int load_containerd(struct work *work)
{
	if (open_documents(work) < 0)
		return -1;
	if (read_version(work->root, &work->version, work->err) < 0 ||
	    read_version(work->source, &work->source_version, work->err) < 0)
		return graft_wrap(work->err, "unable to load config for runtime %s", NAME);
	if (work->source_version == 0)
		work->source_version = 2;
	if (work->version == 0)
		work->version = work->source_version;
	work->plugin = plugin_of(work->version);
	work->source_plugin = plugin_of(work->source_version);
	return 0;
}

/* ---- the new runtime ---- */

static int use_defaults(struct graft_toml *table, struct graft_error *err)
{
	static const char *const empty[] = { "runtime.runtime_root", "runtime.runtime_engine" };

	for (size_t i = 0; i < GRAFT_COUNT(empty); i++) {
		if (graft_toml_set_string(table, empty[i], "", err) < 0)
			return -1;
	}
	return graft_toml_set_bool(table, "runtime.privileged_without_host_devices", false, err);
}

/* Those of the request, and then the others that the runtime inherits. */
static int put_annotations(const struct work *work, struct graft_toml *table)
{
	static const char key[] = "runtime.container_annotations";
	const struct graft_engine_request *request = work->request;
	const char **inherited = NULL, **all = NULL;
	size_t n_inherited = 0, n = 0;

	if (request->n_annotations == 0)
		return 0;
	if (graft_toml_get_strings(table, key, work->arena, &inherited, &n_inherited, work->err) < 0)
		return -1;
	for (size_t i = 0; i < request->n_annotations; i++) {
		if (!graft_arena_push_string(work->arena, &all, &n, request->annotations[i]))
			return graft_fail_memory(work->err);
	}
	for (size_t i = 0; i < n_inherited; i++) {
		if (!graft_is_in(request->annotations, request->n_annotations, inherited[i]) &&
		    !graft_arena_push_string(work->arena, &all, &n, inherited[i]))
			return graft_fail_memory(work->err);
	}
	return graft_toml_set_strings(table, key, all, n, work->err);
}

/* Makes a document whose table "runtime" is that of the new runtime. */
static int make_containerd_runtime(struct work *work, struct graft_toml **ret_table)
{
	const char *type = "", *tried, *default_key = engine_key(work->arena, DEFAULT_NAME(work->source_plugin));
	auto_toml struct graft_toml *table = NULL;
	struct graft_error *err = work->err;

	if (!default_key)
		return graft_fail_memory(err);
	if (engine_toml_inherit(work->source, RUNTIMES(work->source_plugin), default_key, work->request->runtime_name,
				work->arena, &table, &tried, err) < 0)
		return -1;
	if (tried && (engine_note(work->changes, work->arena, ENGINE_WARNS, err,
				  "Could not infer options from runtimes %s", tried) < 0 ||
		      use_defaults(table, err) < 0))
		return -1;
	if (graft_toml_get_string(table, "runtime.runtime_type", &type, err) < 0)
		return -1;
	if (!*type && graft_toml_set_string(
			  table, "runtime.runtime_type",
			  work->request->runtime_type ? work->request->runtime_type : "io.containerd.runc.v2", err) < 0)
		return -1;
	if (put_annotations(work, table) < 0)
		return -1;
	if (graft_toml_set_string(table, "runtime.options.BinaryName", work->request->runtime_path, err) < 0)
		return -1;
	if (work->version == 1 &&
	    graft_toml_set_string(table, "runtime.options.Runtime", work->request->runtime_path, err) < 0)
		return -1;
	*ret_table = TAKE_PTR(table);
	return 0;
}

/* Puts our keys into a document that has the plugin's section. */
static int put_containerd_runtime(struct work *work, struct graft_toml *toml)
{
	const struct graft_engine_request *request = work->request;
	const char *key = engine_key(work->arena, PLACE(work->plugin, "containerd", "runtimes", request->runtime_name));
	const char *default_key = engine_key(work->arena, DEFAULT_NAME(work->plugin));
	const char *cdi_key = engine_key(work->arena, PLACE(work->plugin, "enable_cdi"));
	auto_toml struct graft_toml *table = NULL;

	if (!key || !default_key || !cdi_key)
		return graft_fail_memory(work->err);
	if (make_containerd_runtime(work, &table) < 0 || graft_toml_assign(toml, key, table, "runtime", work->err) < 0)
		return -1;
	if (request->has_default_table && work->version == 1) {
		const char *table_key = engine_key(work->arena, DEFAULT_TABLE(work->plugin));

		if (!table_key)
			return graft_fail_memory(work->err);
		if (request->set_as_default && graft_toml_assign(toml, table_key, table, "runtime", work->err) < 0)
			return -1;
	} else if (engine_toml_default(toml, default_key, request->runtime_name, request->set_as_default, work->err) <
		   0) {
		return -1;
	}
	return request->enable_cdi ? graft_toml_set_bool(toml, cdi_key, true, work->err) : 0;
}

static int set_version(struct work *work, struct graft_toml *toml)
{
	return graft_toml_set_integer(toml, "version", work->version, work->err);
}

/* Warns if the plugin is disabled, since nothing below it has an effect then. */
static int warn_of_disabled_plugin(struct work *work)
{
	const char **names = NULL;
	size_t n = 0;

	if (graft_toml_get_strings(work->root, "disabled_plugins", work->arena, &names, &n, work->err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(names[i], "cri") != 0 && strcmp(names[i], "io.containerd.grpc.v1.cri") != 0 &&
		    strcmp(names[i], work->plugin) != 0)
			continue;
		return engine_note(
		    work->changes, work->arena, ENGINE_WARNS, work->err,
		    "%s disables the CRI plugin: remove '%s' from disabled_plugins, or the runtime has no effect",
		    work->request->config.path, names[i]);
	}
	return 0;
}

static int edit_top_level(struct work *work)
{
	const struct graft_engine_file *config = &work->request->config;

	if (put_containerd_runtime(work, work->root) < 0 || (work->version != 1 && set_version(work, work->root) < 0))
		return -1;
	return engine_toml_edit(work->root, work->changes, work->arena, config, NULL, work->err);
}

/* ---- drop-ins ---- */

/*
 * Copies runtimes of the drop-in that run our programs and are not the requested one: another call,
 * or a person, added them.
 */
static int keep_other_runtimes(struct work *work, struct graft_toml *section)
{
	const char *runtimes = engine_key(work->arena, RUNTIMES(work->plugin)), **names;
	size_t n;

	if (!runtimes)
		return graft_fail_memory(work->err);
	if (graft_toml_get_names(work->drop_in, runtimes, work->arena, &names, &n, work->err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *const *place = PLACE(work->plugin, "containerd", "runtimes", names[i]);
		const char *const *binary_place = PLACE(work->plugin, "containerd", "runtimes", names[i], "options",
							"BinaryName");
		const char *key = engine_key(work->arena, place), *binary_key = engine_key(work->arena, binary_place);
		const char *binary = "";
		enum graft_toml_kind kind;

		if (!key || !binary_key)
			return graft_fail_memory(work->err);
		if (graft_toml_get_string(work->drop_in, binary_key, &binary, work->err) < 0)
			return -1;
		if (graft_toml_get_kind(section, key, &kind, work->err) < 0)
			return -1;
		if (graft_starts_with(graft_path_name(binary), "nvidia-") && kind == GRAFT_TOML_ABSENT &&
		    graft_toml_assign(section, key, work->drop_in, key, work->err) < 0)
			return -1;
	}
	return 0;
}

/* Makes the section for the drop-in. */
static int make_section(struct work *work, struct graft_toml **ret_section)
{
	const struct graft_toml *base = work->source_version == work->version ? work->source : work->root;
	const char *key = engine_key(work->arena, PLACE(work->plugin));
	auto_toml struct graft_toml *section = NULL;

	if (!key)
		return graft_fail_memory(work->err);
	if (graft_toml_parse(graft_toml_name(base), "", 0, &section, work->err) < 0)
		return -1;
	if (!work->request->merges_deeply && graft_toml_assign(section, key, base, key, work->err) < 0)
		return -1;
	if (keep_other_runtimes(work, section) < 0 || put_containerd_runtime(work, section) < 0)
		return -1;
	*ret_section = TAKE_PTR(section);
	return 0;
}

/* Removes the section that the drop-in had before the top-level file changed its version. */
static int remove_old_section(struct work *work)
{
	int64_t version;
	const char *key;

	if (read_version(work->drop_in, &version, work->err) < 0)
		return -1;
	if (version == 0 || version == work->version)
		return 0;
	key = engine_key(work->arena, PLACE(plugin_of(version)));
	return key ? graft_toml_remove(work->drop_in, key, work->err) : graft_fail_memory(work->err);
}

static int edit_drop_in(struct work *work)
{
	const char *key = engine_key(work->arena, PLACE(work->plugin));
	auto_toml struct graft_toml *section = NULL;

	if (!key)
		return graft_fail_memory(work->err);
	if (make_section(work, &section) < 0 || remove_old_section(work) < 0 || set_version(work, work->drop_in) < 0 ||
	    graft_toml_assign(work->drop_in, key, section, key, work->err) < 0)
		return -1;
	return engine_toml_edit(work->drop_in, work->changes, work->arena, &work->request->drop_in,
				"Drop-in config:", work->err);
}

/* The drop-in's path as the engine sees it. */
static const char *drop_in_of(const struct work *work)
{
	const struct graft_engine_request *request = work->request;

	return request->drop_in_host_path ? request->drop_in_host_path : request->drop_in.path;
}

/* Returns the pattern that imports the drop-in's directory. */
static const char *import_of(const struct work *work)
{
	const char *directory = engine_directory_of(drop_in_of(work), work->arena);

	return directory ? graft_arena_printf(work->arena, "%s/*.toml", directory) : NULL;
}

/* How the top-level file imports the drop-in. */
enum import {
	NOT_IMPORTED,
	IMPORTED,          /* by import_of() alone */
	IMPORTED_BY_OTHER, /* by another pattern, too */
};

/* Returns an enum import, or -1. A relative pattern is relative to that file. */
static int find_import(struct work *work)
{
	const char *directory = engine_directory_of(work->request->config.path, work->arena), **patterns = NULL;
	const char *import = import_of(work);
	int found = NOT_IMPORTED;
	size_t n = 0;

	if (!directory || !import)
		return graft_fail_memory(work->err);
	if (graft_toml_get_strings(work->root, "imports", work->arena, &patterns, &n, work->err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *pattern = patterns[i][0] == '/'
					  ? patterns[i]
					  : graft_arena_printf(work->arena, "%s/%s", directory, patterns[i]);

		if (!pattern)
			return graft_fail_memory(work->err);
		if (fnmatch(pattern, drop_in_of(work), FNM_PATHNAME) != 0)
			continue;
		if (strcmp(pattern, import) != 0)
			return IMPORTED_BY_OTHER;
		found = IMPORTED;
	}
	return found;
}

static int edit_imports(struct work *work)
{
	const char *import = import_of(work), *default_key = engine_key(work->arena, DEFAULT_NAME(work->plugin));
	struct graft_error *err = work->err;
	int how;

	if (!import || !default_key)
		return graft_fail_memory(err);
	how = find_import(work);
	if (how < 0 || (!graft_toml_has(work->root, "version") && set_version(work, work->root) < 0))
		return -1;
	if (how == NOT_IMPORTED && graft_toml_append_string(work->root, "imports", import, err) < 0)
		return -1;
	/* A file that is merged key by key cannot remove a key. */
	if (work->request->merges_deeply && !work->request->set_as_default &&
	    engine_toml_default(work->root, default_key, work->request->runtime_name, false, err) < 0)
		return -1;
	return engine_toml_edit(work->root, work->changes, work->arena, &work->request->config,
				"Top-level config:", err);
}

/* ---- MicroK8s ---- */

/*
 * MicroK8s makes the engine's file from this one and replaces variables such as ${SNAP_DATA}: a
 * drop-in file, which may repeat its tables, would keep them.
 */
static bool is_template_of_microk8s(const struct work *work)
{
	return strcmp(graft_path_name(work->request->config.path), "containerd-template.toml") == 0;
}

static int remove_import(struct work *work, const struct graft_toml *backup)
{
	const char *import = import_of(work), **patterns = NULL;
	size_t n = 0;

	if (!import)
		return graft_fail_memory(work->err);
	if (backup && graft_toml_get_strings(backup, "imports", work->arena, &patterns, &n, work->err) < 0)
		return -1;
	if (graft_is_in(patterns, n, import))
		return 0;
	if (graft_toml_remove_string(work->root, "imports", import, work->err) < 0 ||
	    graft_toml_get_strings(work->root, "imports", work->arena, &patterns, &n, work->err) < 0)
		return -1;
	return n > 0 || (backup && graft_toml_has(backup, "imports"))
		   ? 0
		   : graft_toml_remove(work->root, "imports", work->err);
}

/*
 * Whether the drop-in has a section of the CRI plugin, which may be of another version, and whether
 * that is all it has, as installers write it.
 */
static int find_section(struct work *work, bool *ret_has, bool *ret_alone)
{
	const char **names, **plugins;
	size_t n, n_plugins;

	if (graft_toml_get_names(work->drop_in, NULL, work->arena, &names, &n, work->err) < 0 ||
	    graft_toml_get_names(work->drop_in, "plugins", work->arena, &plugins, &n_plugins, work->err) < 0)
		return -1;
	*ret_has = false;
	for (int version = 1; version <= 3; version++)
		*ret_has |= graft_is_in(plugins, n_plugins, plugin_of(version));
	*ret_alone = n_plugins == 1 && strcmp(plugins[0], work->plugin) == 0;
	for (size_t i = 0; i < n; i++)
		*ret_alone &= strcmp(names[i], "version") == 0 || strcmp(names[i], "plugins") == 0;
	return 0;
}

/*
 * A drop-in that the template imports hides the runtimes in it, or the whole section, and keeps its
 * variables. The file stays: others may have made it.
 */
static int stop_import(struct work *work)
{
	const struct graft_engine_request *request = work->request;
	bool has_section, alone;
	int how;

	if (!request->drop_in.text.bytes)
		return 0;
	how = find_import(work);
	if (how < 0 || find_section(work, &has_section, &alone) < 0)
		return -1;
	if (how == NOT_IMPORTED || !has_section)
		return 0;
	if (!alone || how == IMPORTED_BY_OTHER || request->import_is_shared)
		return engine_note(work->changes, work->arena, ENGINE_WARNS, work->err,
				   "%s imports %s, which hides the runtime: remove that file, or its section of the "
				   "CRI plugin, and restart MicroK8s",
				   request->config.path, drop_in_of(work));
	if (remove_import(work, NULL) < 0)
		return -1;
	return engine_note(work->changes, work->arena, ENGINE_TELLS, work->err,
			   "%s no longer imports %s, which would hide the runtime", request->config.path,
			   drop_in_of(work));
}

/* Restores the import of the backup, as often as it is there. */
static int import_again(struct work *work, const struct graft_toml *backup)
{
	const char *import = import_of(work), **patterns = NULL;
	int how = find_import(work);
	size_t n = 0;

	if (!import)
		return graft_fail_memory(work->err);
	if (how < 0 || graft_toml_get_strings(backup, "imports", work->arena, &patterns, &n, work->err) < 0)
		return -1;
	for (size_t i = 0; i < n && how == NOT_IMPORTED; i++) {
		if (strcmp(patterns[i], import) == 0 &&
		    graft_toml_append_string(work->root, "imports", import, work->err) < 0)
			return -1;
	}
	return 0;
}

static bool uses_drop_in(const struct work *work)
{
	return work->version != 1 && has_engine_file(&work->request->drop_in) && !is_template_of_microk8s(work);
}

static int configure_containerd(const struct graft_engine_request *request, struct graft_arena *arena,
				struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	auto_work struct work work = { .request = request, .arena = arena, .changes = ret_changes, .err = err };
	int rc;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (load_containerd(&work) < 0 ||
	    engine_note(ret_changes, arena, ENGINE_TELLS, err, "Using config version %lld", (long long)work.version) <
		0 ||
	    engine_note(ret_changes, arena, ENGINE_TELLS, err, "Using CRI runtime plugin name \"%s\"", work.plugin) < 0)
		return -1;
	if (work.version == 1 && has_engine_file(&request->drop_in) &&
	    engine_note(ret_changes, arena, ENGINE_WARNS, err,
			"A containerd configuration of version 1 has no drop-in files: editing %s itself",
			request->config.path) < 0)
		return -1;
	if (is_template_of_microk8s(&work) && has_engine_file(&request->drop_in) &&
	    engine_note(ret_changes, arena, ENGINE_TELLS, err,
			"MicroK8s replaces variables in %s only: editing it, without a drop-in file",
			request->config.path) < 0)
		return -1;
	rc = warn_of_disabled_plugin(&work);
	if (rc == 0 && is_template_of_microk8s(&work))
		rc = stop_import(&work);
	if (rc == 0)
		rc = uses_drop_in(&work) ? edit_drop_in(&work) : edit_top_level(&work);
	if (rc == 0 && uses_drop_in(&work))
		rc = edit_imports(&work);
	return rc < 0 ? graft_wrap(err, "unable to update config") : 0;
}

/* ---- undo ---- */

/* Removes our keys from a document. */
static int take_containerd_runtime(struct work *work, struct graft_toml *toml, const struct graft_toml *backup)
{
	const char *name = work->request->runtime_name;
	struct graft_arena *arena = work->arena;

	if (engine_toml_restore(toml, PLACE(work->plugin, "containerd", "runtimes", name), backup, arena, work->err) <
		0 ||
	    engine_toml_restore_default(toml, DEFAULT_NAME(work->plugin), name, backup, arena, work->err) < 0)
		return -1;
	if (work->request->has_default_table && work->version == 1 &&
	    engine_toml_restore(toml, DEFAULT_TABLE(work->plugin), backup, arena, work->err) < 0)
		return -1;
	return engine_toml_restore(toml, PLACE(work->plugin, "enable_cdi"), backup, arena, work->err);
}

/* Removes the version if nothing else is left, and otherwise restores that of the backup. */
static int drop_lone_version(struct work *work, struct graft_toml *toml, const struct graft_toml *backup)
{
	const char **names;
	size_t n;

	if (graft_toml_get_names(toml, NULL, work->arena, &names, &n, work->err) < 0)
		return -1;
	if (n == 1 && strcmp(names[0], "version") == 0 && !backup)
		return graft_toml_remove(toml, "version", work->err);
	return backup ? graft_toml_assign(toml, "version", backup, "version", work->err) : 0;
}

static int undo_top_level(struct work *work)
{
	const struct graft_engine_file *config = &work->request->config;
	auto_toml struct graft_toml *backup = NULL;

	if (!config->text.bytes)
		return 0;
	if (engine_toml_open_backup(NAME, config, &backup, work->err) < 0 ||
	    take_containerd_runtime(work, work->root, backup) < 0 || drop_lone_version(work, work->root, backup) < 0)
		return -1;
	if (backup && has_engine_file(&work->request->drop_in) && is_template_of_microk8s(work) &&
	    import_again(work, backup) < 0)
		return -1;
	return engine_toml_undo(work->root, backup, work->changes, work->arena, config, NULL, work->err);
}

/* Restores the section that the drop-in had when the top-level file had another version. */
static int restore_old_section(struct work *work, const struct graft_toml *backup)
{
	int64_t version = 0;

	if (backup && read_version(backup, &version, work->err) < 0)
		return -1;
	if (version == 0 || version == work->version)
		return 0;
	return engine_toml_restore(work->drop_in, PLACE(plugin_of(version)), backup, work->arena, work->err);
}

/* Removes the whole section, which is a copy or ours, unless it contains another call's runtime. */
static int undo_drop_in(struct work *work)
{
	const struct graft_engine_file *file = &work->request->drop_in;
	auto_toml struct graft_toml *backup = NULL, *others = NULL;
	const char **names;
	size_t n_others;

	if (!file->text.bytes)
		return 0;
	if (engine_toml_open_backup(NAME, file, &backup, work->err) < 0 ||
	    take_containerd_runtime(work, work->drop_in, backup) < 0 ||
	    graft_toml_parse(file->path, "", 0, &others, work->err) < 0 || keep_other_runtimes(work, others) < 0 ||
	    graft_toml_get_names(others, NULL, work->arena, &names, &n_others, work->err) < 0)
		return -1;
	if ((backup || n_others == 0) &&
	    engine_toml_restore(work->drop_in, PLACE(work->plugin), backup, work->arena, work->err) < 0)
		return -1;
	if (restore_old_section(work, backup) < 0 || drop_lone_version(work, work->drop_in, backup) < 0)
		return -1;
	return engine_toml_undo(work->drop_in, backup, work->changes, work->arena, file, "Drop-in config:", work->err);
}

static bool is_backup(const struct graft_engine_edit *edit)
{
	const struct graft_engine_text *backup = &edit->file->backup;

	return backup->bytes && backup->length == edit->text.length &&
	       memcmp(backup->bytes, edit->text.bytes, backup->length) == 0;
}

static bool has_record(const struct graft_engine_file *file)
{
	return file->backup.bytes || file->is_ours;
}

/*
 * Removes the import along with the drop-in, unless the drop-in keeps later changes, other files
 * need the import, or it was there before: then only the drop-in was changed.
 */
static int undo_imports(struct work *work)
{
	const struct graft_engine_file *config = &work->request->config;
	const struct graft_engine_changes *changes = work->changes;
	bool stays = changes->n_edits > 0 && changes->edits[0].text.bytes && !is_backup(&changes->edits[0]);
	auto_toml struct graft_toml *backup = NULL;

	if (!config->text.bytes || stays || (has_record(&work->request->drop_in) && !has_record(config)))
		return 0;
	if (work->request->import_is_shared)
		return engine_note(work->changes, work->arena, ENGINE_TELLS, work->err,
				   "%s keeps the import of %s, which other files need", config->path,
				   import_of(work) ? import_of(work) : "");
	if (engine_toml_open_backup(NAME, config, &backup, work->err) < 0 || remove_import(work, backup) < 0 ||
	    engine_toml_put_default_back(work->root, DEFAULT_NAME(work->plugin), work->request->runtime_name, backup,
					 work->arena, work->err) < 0 ||
	    drop_lone_version(work, work->root, backup) < 0)
		return -1;
	return engine_toml_undo(work->root, backup, work->changes, work->arena, config, "Top-level config:", work->err);
}

static int undo_containerd(const struct graft_engine_request *request, struct graft_arena *arena,
			   struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	auto_work struct work work = { .request = request, .arena = arena, .changes = ret_changes, .err = err };
	int rc;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (load_containerd(&work) < 0)
		return -1;
	rc = uses_drop_in(&work) ? undo_drop_in(&work) : undo_top_level(&work);
	if (rc == 0 && uses_drop_in(&work))
		rc = undo_imports(&work);
	return rc < 0 ? graft_wrap(err, "unable to update config") : 0;
}

const struct graft_engine graft_engine_containerd = {
	.name = NAME,
	.config_path = "/etc/containerd/config.toml",
	.drop_in_path = "/etc/containerd/conf.d/99-nvidia.toml",
	.needs_absolute_path = true,
	.has_cdi_switch = true,
	.configure = configure_containerd,
	.undo = undo_containerd,
};
