/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_configure: adds the NVIDIA runtime to the configuration of a container engine, and
 * removes it again (SPEC ctk-and-cdi 1.1). See docs/engine-configuration.md. src/engine decides on
 * the content of the files; this file deals with the user. No engine is restarted or signalled.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/option_rows.h"
#include "base/path.h"
#include "cli/ctk/ctk.h"
#include "cli/ctk/engine_check.h"
#include "cli/ctk/engine_files.h"
#include "formats/unified_diff.h"

#define DEFAULT_DROP_IN      "RUNTIME_SPECIFIC_DEFAULT"
#define DEFAULT_RUNTIME_PATH "nvidia-container-runtime"
#define PODMAN_HOOK          "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json"

struct configure {
	struct ctk_base base;
	bool dry_run, undo, set_as_default, enable_cdi;
	const char *runtime, *config, *drop_in, *executable, *mode, *source, *hook_output;
	const char *name, *path, *hook_path;
	/* derived from the options */
	const struct graft_engine *engine; /* NULL: a hook for no particular engine */
	bool by_hook, from_command;
	bool is_usual; /* the files, or the program, belong to the engine that is installed here */
};

/* ---- what was asked for ---- */

static bool is_hook_mode(const char *mode)
{
	return strcmp(mode, "oci-hook") == 0 || strcmp(mode, "hook") == 0;
}

/*
 * Podman is the only engine for which hook mode means more than one file: its configuration names
 * the directory.
 */
static int check_hook_mode(struct configure *configure, struct graft_error *err)
{
	configure->by_hook = true;
	configure->engine = strcmp(configure->runtime, graft_engine_podman.name) == 0 ? &graft_engine_podman : NULL;
	if (!configure->engine)
		graft_warn(&configure->base.ctk->log, "The \"%s\" config-mode is deprecated", configure->mode);
	if (configure->hook_path[0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0, "the NVIDIA runtime hook path \"%s\" is not an absolute path",
				  configure->hook_path);
	return 0;
}

static const char *const mode_names[] = { "config-file", "oci-hook", NULL };

static int check_engine(struct configure *configure, struct graft_error *err)
{
	const struct graft_log *log = &configure->base.ctk->log;
	const char *mode = configure->mode, *meant;

	if (*mode && strcmp(mode, "config-file") != 0 && strcmp(mode, "config") != 0) {
		graft_warn(log, "Ignoring unsupported config mode for %s: \"%s\"", configure->runtime, mode);
		meant = graft_nearest(mode_names, GRAFT_COUNT(mode_names) - 1, mode);
		if (meant)
			graft_warn(log, "Did you mean --config-mode=%s?", meant);
	}
	configure->engine = graft_engine_find(configure->runtime);
	if (!configure->engine)
		return graft_fail(err, GRAFT_INVALID, 0, "unrecognized runtime '%s'", configure->runtime);
	if (configure->engine->needs_absolute_path && strcmp(configure->path, DEFAULT_RUNTIME_PATH) == 0)
		configure->path = GRAFT_ENGINE_RUNTIME_PATH;
	if (configure->engine->needs_absolute_path && configure->path[0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0, "the NVIDIA runtime path \"%s\" is not an absolute path",
				  configure->path);
	if (configure->enable_cdi && !configure->engine->has_cdi_switch) {
		graft_warn(log, "Ignoring cdi.enabled flag for %s", configure->runtime);
		configure->enable_cdi = false;
	}
	return 0;
}

/* Docker and Podman cannot report their configuration. */
static int check_source(struct configure *configure, struct graft_error *err)
{
	const struct graft_log *log = &configure->base.ctk->log;
	bool silent = configure->engine == &graft_engine_docker || configure->engine == &graft_engine_podman;

	if (silent && *configure->executable) {
		graft_warn(log, "Ignoring executable-path=\"%s\" flag for %s", configure->executable,
			   configure->runtime);
		configure->executable = "";
	}
	configure->from_command = strcmp(configure->source, "command") == 0;
	if (silent && configure->from_command) {
		graft_warn(log, "A %s Config Source is not supported for %s; using file", configure->source,
			   configure->runtime);
		configure->from_command = false;
	} else if (!configure->from_command && strcmp(configure->source, "file") != 0) {
		return graft_fail(err, GRAFT_INVALID, 0, "unrecognized Config Source: %s", configure->source);
	}
	return 0;
}

/* Whether a file is not given, or is the one that the engine reads by default. */
static bool is_default(const char *path, const char *usual)
{
	return !*path || strcmp(path, DEFAULT_DROP_IN) == 0 || (usual && strcmp(path, usual) == 0);
}

/* Sets the files that were not given. */
static int check_runtime_configure_paths(struct configure *configure, struct graft_error *err)
{
	const struct graft_engine *engine = configure->engine;

	configure->is_usual = *configure->executable || (is_default(configure->config, engine->config_path) &&
							 is_default(configure->drop_in, engine->drop_in_path));
	if (!*configure->config)
		configure->config = engine->config_path;
	if (strcmp(configure->drop_in, DEFAULT_DROP_IN) == 0)
		configure->drop_in = engine->drop_in_path ? engine->drop_in_path : "";
	if (*configure->drop_in && !engine->drop_in_path)
		return graft_fail(err, GRAFT_INVALID, 0, "runtime %s does not support drop-in configs", engine->name);
	if (*configure->drop_in && configure->drop_in[0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0, "the drop-in-config path \"%s\" is not an absolute path",
				  configure->drop_in);
	if (!*configure->drop_in)
		configure->drop_in = NULL;
	if (!*configure->executable)
		configure->executable = NULL;
	if (configure->by_hook && !*configure->hook_output)
		configure->hook_output = PODMAN_HOOK;
	if (configure->by_hook && configure->hook_output[0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0, "the OCI hook path \"%s\" is not an absolute path",
				  configure->hook_output);
	return 0;
}

/* SPEC ctk-and-cdi 1.1 "Validation, in this order". */
static int check_runtime_configure(struct configure *configure, struct graft_error *err)
{
	if (is_hook_mode(configure->mode)) {
		if (check_hook_mode(configure, err) < 0)
			return -1;
		return configure->engine ? check_runtime_configure_paths(configure, err) : 0;
	}
	if (check_engine(configure, err) < 0 || check_source(configure, err) < 0)
		return -1;
	return check_runtime_configure_paths(configure, err);
}

/* ---- the files ---- */

struct work {
	struct configure *configure;
	struct ctk *ctk;
	struct graft_engine_request request;
	struct graft_engine_changes changes;
};

static int read_files(struct work *work, struct graft_error *err)
{
	const struct configure *configure = work->configure;
	struct graft_engine_request *request = &work->request;
	struct graft_arena *arena = work->ctk->arena;
	const char *hook = configure->by_hook ? configure->hook_output : NULL;
	const bool dry_run = configure->dry_run;

	*request = (struct graft_engine_request){
		.runtime_name = configure->name,
		.runtime_path = configure->path,
		.set_as_default = configure->set_as_default,
		.enable_cdi = configure->enable_cdi,
		.hook_path = configure->hook_path,
	};
	if (ctk_engine_file_read(&request->config, configure->config, CTK_FILE_ALONE, dry_run, arena, err) < 0 ||
	    ctk_engine_file_read(&request->drop_in, configure->drop_in, CTK_FILE_IN_DROP_INS, dry_run, arena, err) <
		0 ||
	    ctk_engine_file_read(&request->hook, hook, CTK_FILE_IN_DROP_INS, dry_run, arena, err) < 0)
		return -1;
	if (request->config.text.bytes)
		graft_info(&work->ctk->log, "Loading config from %s", request->config.path);
	else
		graft_info(&work->ctk->log, "Config file does not exist; using empty config");
	return 0;
}

static int load_configured_engine(struct work *work, struct graft_error *err)
{
	const struct configure *configure = work->configure;
	int rc = read_files(work, err);

	if (rc == 0 && configure->from_command && !configure->undo)
		rc = ctk_engine_read_source(work->ctk, configure->engine, configure->executable, &work->request, err);
	if (rc < 0)
		return graft_wrap(err, "unable to load config for runtime %s", configure->engine->name);
	if (configure->engine == &graft_engine_containerd && configure->is_usual &&
	    ctk_engine_merges_deeply(work->ctk, configure->executable, &work->request.merges_deeply, err) < 0)
		return -1;
	if (configure->drop_in)
		work->request.import_is_shared = ctk_engine_has_neighbours(configure->drop_in, ".toml");
	return 0;
}

static graft_engine_function *function_of(const struct configure *configure, bool undo)
{
	if (configure->by_hook)
		return undo ? graft_engine_podman_unhook : graft_engine_podman_hook;
	return undo ? configure->engine->undo : configure->engine->configure;
}

static bool changes_anything(const struct graft_engine_changes *changes)
{
	for (size_t i = 0; i < changes->n_edits; i++) {
		if (graft_engine_edit_changes(&changes->edits[i]))
			return true;
	}
	return false;
}

/* ---- dry run ---- */

static int add_difference(const struct graft_engine_edit *edit, struct graft_buffer *out, struct graft_error *err)
{
	const struct graft_engine_text *old = &edit->file->text, *new = &edit->text;
	const struct graft_diff_text before = { old->bytes ? edit->file->path : "/dev/null", old->bytes, old->length };
	const struct graft_diff_text after = { new->bytes ? edit->file->path : "/dev/null", new->bytes, new->length };

	return graft_unified_diff(&before, &after, out, err);
}

/*
 * The documents go to stdout, for scripts, each after its label on stderr; the differences go to
 * stderr, for people.
 */
static int show_configured_engine(const struct work *work)
{
	auto_buffer struct graft_buffer difference = { 0 };
	struct graft_error err = { .status = GRAFT_OK };
	int status = 0;

	for (size_t i = 0; i < work->changes.n_edits && status == 0; i++) {
		const struct graft_engine_edit *edit = &work->changes.edits[i];
		struct graft_buffer document = { 0 };

		if (edit->label)
			graft_info(&work->ctk->log, "%s", edit->label);
		if (!edit->text.bytes)
			graft_info(&work->ctk->log, "%s would be removed", edit->file->path);
		else
			graft_buffer_add(&document, edit->text.bytes, edit->text.length);
		graft_buffer_string(&document, edit->text.bytes ? "\n" : "");
		status = ctk_print(work->ctk, &document);
		if (status == 0 && add_difference(edit, &difference, &err) < 0)
			status = ctk_fail(work->ctk, &err, "unable to show the changes");
	}
	if (status == 0)
		(void)fwrite(graft_buffer_text(&difference), 1, difference.length, stderr);
	return status;
}

/* ---- writing ---- */

/*
 * Finds out whether the file already contains a change of ours. If so, its backup is older than
 * that, and stays.
 */
static int has_trace(const struct work *work, const struct graft_engine_file *file, bool *ret_has,
		     struct graft_error *err)
{
	struct graft_engine_request request = work->request;
	struct graft_engine_changes undone;
	size_t number = 0;

	request.config.backup = request.drop_in.backup = request.hook.backup = (struct graft_engine_text){ NULL, 0 };
	request.import_is_shared = false;
	if (function_of(work->configure, true)(&request, work->ctk->arena, &undone, err) < 0)
		return -1;
	*ret_has = false;
	for (; number < undone.n_edits; number++) {
		if (strcmp(undone.edits[number].file->path, file->path) == 0)
			*ret_has = graft_engine_edit_changes(&undone.edits[number]);
	}
	return 0;
}

/*
 * SPEC ctk-and-cdi 1.1 "Flow": missing directories are created, since image builders rely on that.
 * A mistyped path would leave directories that no engine reads, so warn about a path that the user
 * gave. An engine may not have the directory of drop-ins yet.
 */
static void warn_of_new_folder(const struct work *work, const struct graft_engine_edit *edit)
{
	const struct graft_engine *engine = work->configure->engine;
	const struct graft_engine_request *request = &work->request;
	struct graft_arena *arena = work->ctk->arena;
	const char *path = edit->file->path, *folder = graft_path_directory(path, arena), *there = folder;
	const char *usual = edit->file == &request->config    ? engine->config_path
			    : edit->file == &request->drop_in ? engine->drop_in_path
							      : PODMAN_HOOK;
	struct stat status;

	if (!edit->text.bytes || !folder || (usual && strcmp(path, usual) == 0))
		return;
	if (edit->file != &request->config)
		there = graft_path_directory(folder, arena);
	if (there && stat(there, &status) < 0 && errno == ENOENT)
		graft_warn(&work->ctk->log, "The directory %s does not exist; creating it. Is %s the right path?",
			   folder, path);
}

static int save_configured_engine(struct work *work, struct graft_error *err)
{
	struct ctk_engine_save saves[GRAFT_ENGINE_MAX_EDITS] = { { .edit = NULL } };
	const bool undo = work->configure->undo;

	for (size_t i = 0; i < work->changes.n_edits; i++) {
		const struct graft_engine_edit *edit = &work->changes.edits[i];
		bool has = false;

		if (!undo && has_trace(work, edit->file, &has, err) < 0)
			return -1;
		warn_of_new_folder(work, edit);
		saves[i] = (struct ctk_engine_save){
			.edit = edit,
			.place = edit->file == &work->request.config ? CTK_FILE_ALONE : CTK_FILE_IN_DROP_INS,
			.keep = !undo && (!has || !(edit->file->backup.bytes || edit->file->is_ours)),
			.drop = undo,
		};
	}
	return ctk_engine_files_save(saves, work->changes.n_edits, work->ctk->arena, err);
}

static void tell_written(const struct work *work)
{
	const struct graft_log *log = &work->ctk->log;
	const struct graft_engine *engine = work->configure->engine;

	for (size_t i = 0; i < work->changes.n_edits; i++) {
		const struct graft_engine_edit *edit = &work->changes.edits[i];

		if (!graft_engine_edit_changes(edit))
			continue;
		graft_info(log, edit->text.bytes ? "Wrote updated config to %s" : "Removed empty config from %s",
			   edit->file->path);
	}
	if (engine == &graft_engine_podman)
		graft_info(log, "podman reads it at its next call: nothing has to be restarted.");
	else
		graft_info(log, "It is recommended that %s daemon be restarted.", engine->name);
	/* QUIRK: on a reload, dockerd does not forget what the file no longer names. */
	if (engine == &graft_engine_docker && !work->configure->undo)
		graft_info(log, "For --runtime, 'systemctl reload docker' is enough. For --gpus, docker has to be "
				"restarted once after the hook is installed.");
}

static void tell_unchanged(const struct work *work)
{
	const struct configure *configure = work->configure;

	if (configure->undo)
		graft_info(&work->ctk->log,
			   "There is nothing to undo: nothing was changed, and %s need not be restarted.",
			   configure->engine->name);
	else
		graft_info(&work->ctk->log,
			   "%s is configured already: nothing was changed, and it need not be restarted.",
			   configure->engine->name);
}

/*
 * Lets the engine check the result. Files in unusual places belong to another engine (k3s, an image
 * that is being built), so an objection of the one in PATH is only a warning.
 */
static int check_result(const struct work *work, struct graft_error *err)
{
	const struct configure *configure = work->configure;
	const char *name = configure->engine->name;

	if (ctk_engine_check(work->ctk, configure->engine, configure->executable, &work->request, &work->changes,
			     configure->undo, err) == 0)
		return 0;
	if (configure->is_usual || err->status == GRAFT_NO_MEMORY)
		return -1;
	graft_warn(&work->ctk->log, "The %s in PATH does not accept the new configuration: %s", name, err->msg);
	graft_warn(&work->ctk->log, "It may not be the one that reads %s%s", configure->config,
		   configure->engine == &graft_engine_containerd || configure->engine == &graft_engine_crio
		       ? "; name the right one with --executable-path"
		       : "");
	graft_error_clear(err);
	return 0;
}

static int configure_engine(struct work *work)
{
	const struct configure *configure = work->configure;
	struct graft_error err = { .status = GRAFT_OK };

	if (load_configured_engine(work, &err) < 0 ||
	    function_of(configure, configure->undo)(&work->request, work->ctk->arena, &work->changes, &err) < 0)
		return ctk_fail(work->ctk, &err, "%s", "");
	ctk_engine_tell_notes(work->ctk, &work->changes);
	if (configure->dry_run)
		return show_configured_engine(work);
	if (!changes_anything(&work->changes)) {
		tell_unchanged(work);
		return 0;
	}
	if (check_result(work, &err) < 0)
		return ctk_fail(work->ctk, &err, "unable to update config");
	if (save_configured_engine(work, &err) < 0)
		return ctk_fail(work->ctk, &err, "unable to flush config");
	tell_written(work);
	return 0;
}

/* ---- a hook for no particular engine ---- */

/*
 * Restores the original if the file is as we would write it. Returns 1 if there is something to do.
 */
static int undo_hook(struct configure *configure, const struct graft_engine_file *file,
		     const struct graft_engine_text *text, struct graft_engine_edit *edit)
{
	const struct graft_log *log = &configure->base.ctk->log;

	if (!file->text.bytes) {
		graft_info(log, "There is nothing to undo: %s does not exist.", file->path);
		return 0;
	}
	edit->text = *text;
	if (graft_engine_edit_changes(edit)) {
		graft_warn(log, "%s has been changed since, so it is kept", file->path);
		return 0;
	}
	edit->text = file->backup;
	return 1;
}

static int write_hook(struct configure *configure, const struct graft_engine_text *text, struct graft_error *err)
{
	struct ctk *ctk = configure->base.ctk;
	struct graft_engine_file file;
	struct graft_engine_edit edit = { .file = &file, .text = *text };
	const struct ctk_engine_save save = {
		.edit = &edit, .place = CTK_FILE_IN_DROP_INS, .keep = !configure->undo, .drop = configure->undo
	};

	if (ctk_engine_file_read(&file, configure->hook_output, CTK_FILE_IN_DROP_INS, false, ctk->arena, err) < 0)
		return -1;
	if (configure->undo && undo_hook(configure, &file, text, &edit) == 0)
		return 0;
	if (!graft_engine_edit_changes(&edit)) {
		graft_info(&ctk->log, "%s already exists: nothing was changed.", file.path);
		return 0;
	}
	if (ctk_engine_files_save(&save, 1, ctk->arena, err) < 0)
		return -1;
	graft_info(&ctk->log, edit.text.bytes ? "Wrote %s" : "Removed %s", file.path);
	return 0;
}

static int configure_hook(struct configure *configure)
{
	struct ctk *ctk = configure->base.ctk;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_engine_text text;

	if (graft_engine_oci_hook(configure->hook_path, ctk->arena, &text, &err) < 0)
		return ctk_fail(ctk, &err, "error creating OCI hook");
	if (!*configure->hook_output || configure->dry_run)
		return ctk_print_bytes(ctk, text.bytes, text.length);
	return write_hook(configure, &text, &err) < 0 ? ctk_fail(ctk, &err, "error creating OCI hook") : 0;
}

/* ---- the command ---- */

static const char *const engine_names[] = { "containerd", "crio", "docker", "podman", NULL };
static const char *const source_names[] = { "file", "command", NULL };

/* clang-format off */
#define AT(member) .offset = offsetof(struct configure, member)
static const struct graft_option options[] = {
	{ .name = "dry-run", FLAG, AT(dry_run),
	  .help = "Print the new files on stdout and the differences on stderr; write nothing" },
	{ .name = "undo", FLAG, AT(undo), .help = "Restore what was there before this command changed it" },
	{ .name = "runtime", TEXT, AT(runtime), .value_name = "ENGINE", .values = engine_names,
	  .help = "The container engine (default docker)" },
	{ .name = "config", TEXT, AT(config), .value_name = "FILE",
	  .help = "The engine's main configuration file; with --dry-run, - is standard input" },
	{ .name = "drop-in-config", TEXT, AT(drop_in), .value_name = "FILE",
	  .help = "The drop-in file to write; empty: write the main file" },
	{ .name = "executable-path", TEXT, AT(executable), .value_name = "PROGRAM",
	  .help = "The engine's program, which prints its configuration" },
	{ .name = "config-mode", TEXT, AT(mode), .value_name = "MODE", .values = mode_names,
	  .help = "How to register the runtime: config-file or oci-hook" },
	{ .name = "config-source", TEXT, AT(source), .value_name = "SOURCE", .values = source_names,
	  .help = "Where to read the current configuration: file or command" },
	{ .name = "oci-hook-path", TEXT, AT(hook_output), .value_name = "FILE",
	  .help = "Hook file for --config-mode=oci-hook; empty: stdout" },
	{ .name = "nvidia-runtime-name", TEXT, AT(name), .value_name = "NAME",
	  .help = "Name of the new runtime (default nvidia)" },
	{ .name = "nvidia-runtime-path", TEXT, AT(path), ALIAS("runtime-path"), .value_name = "FILE",
	  .help = "Program of the new runtime (default nvidia-container-runtime)" },
	{ .name = "nvidia-runtime-hook-path", TEXT, AT(hook_path), .value_name = "FILE",
	  .help = "Hook for --config-mode=oci-hook (default /usr/bin/nvidia-container-runtime-hook)" },
	{ .name = "nvidia-set-as-default", FLAG, AT(set_as_default), ALIAS("set-as-default"),
	  .help = "Make it the engine's default runtime" },
	{ .name = "cdi.enabled", FLAG, AT(enable_cdi), ALIAS("cdi.enable", "enable-cdi"),
	  .help = "Enable CDI device names in the engine" },
};
/* clang-format on */

static int configure_runtime(void *target, struct graft_error *err)
{
	struct configure *configure = target;
	struct work work = { .configure = configure, .ctk = configure->base.ctk };

	if (check_runtime_configure(configure, err) < 0)
		return -1;
	return configure->engine ? configure_engine(&work) : configure_hook(configure);
}

const struct graft_command ctk_runtime_configure = {
	CTK_COMMAND,
	.name = "configure",
	.summary = "Register the NVIDIA runtime with a container engine",
	.description = "Edits the configuration of docker, containerd, crio or podman so that the engine has a runtime "
		       "named nvidia. Everything else in the files stays as written, and a backup of each changed file "
		       "is kept next to it. The engine is not restarted.",
	GRAFT_OPTIONS(options),
	CTK_WORK(configure_runtime, struct configure, .runtime = "docker", .config = "", .drop_in = DEFAULT_DROP_IN,
		 .executable = "", .mode = "", .source = "file", .hook_output = "", .name = "nvidia",
		 .path = DEFAULT_RUNTIME_PATH, .hook_path = "/usr/bin/nvidia-container-runtime-hook"),
};
