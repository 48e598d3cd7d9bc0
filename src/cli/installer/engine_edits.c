/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_edits: registers three runtimes with the engine, and takes them back (SPEC
 * installer-and-nri 5). src/engine edits for one runtime at a time; its results are chained and
 * written once.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "cli/ctk/engine_check.h"
#include "cli/ctk/engine_files.h"
#include "cli/installer/installer.h"

#define FILE_MAX ((size_t)16 << 20)

struct files {
	const struct installer_options *options;
	struct graft_arena *arena;
	struct graft_engine_request request;
	struct installer_runtime runtimes[INSTALLER_RUNTIMES];
	bool is_foreign[INSTALLER_RUNTIMES];
};

/* ---- reading ---- */

/* Whether the engine's release merges files key by key. */
static int read_release(struct files *files, struct graft_error *err)
{
	const struct installer_options *o = files->options;

	return ctk_engine_merges_deeply(o->base.ctk, o->executable[0] != '\0' ? o->executable : NULL,
					&files->request.merges_deeply, err);
}

/* One item of --config-source. Returns 0 if it can be read. */
static int read_config_source(struct files *files, const char *source, struct graft_error *err)
{
	const struct installer_options *o = files->options;
	struct graft_engine_request *request = &files->request;
	const char *path;
	int rc;

	if (strcmp(source, "file") == 0)
		return 0;
	if (graft_starts_with(source, "file=")) {
		path = source + strlen("file=");
		rc = graft_host_file_read(path, FILE_MAX, files->arena, &request->source.bytes, &request->source.length,
					  err);
		request->source_name = path;
		return rc == 0 ? graft_fail(err, GRAFT_NOT_FOUND, 0, "there is no %s", path) : rc < 0 ? -1 : 0;
	}
	path = o->executable[0] != '\0' ? o->executable : NULL;
	rc = ctk_engine_read_source(o->base.ctk, o->engine, path, request, err);
	return rc == 0 && o->engine == &graft_engine_containerd ? read_release(files, err) : rc;
}

static int read_config_sources(struct files *files, struct graft_error *err)
{
	const struct ctk_list *sources = &files->options->config_sources;
	char text[800];

	/* The engine in PATH may not be that of K3s. */
	if (files->options->is_generated)
		return files->options->executable[0] != '\0' ? read_release(files, err) : 0;
	for (size_t i = 0; i < sources->n; i++) {
		graft_error_clear(err);
		if (read_config_source(files, sources->items[i], err) == 0)
			return 0;
		if (i + 1 < sources->n)
			graft_info(&files->options->base.ctk->log, "Could not load config from \"%s\": %s",
				   sources->items[i], graft_error_text(err, text, sizeof(text)));
	}
	return sources->n == 0 ? 0 : -1;
}

static int list_annotations(struct files *files, struct graft_error *err)
{
	const struct ctk_list *prefixes = &files->options->containerd_annotation_prefixes;
	const char **annotations = NULL;
	size_t n = 0;

	for (size_t i = 0; i < prefixes->n; i++) {
		const char *pattern = graft_arena_printf(files->arena, "%s*", prefixes->items[i]);

		if (!pattern || !graft_arena_push_string(files->arena, &annotations, &n, pattern))
			return graft_fail_memory(err);
	}
	files->request.annotations = annotations;
	files->request.n_annotations = n;
	return 0;
}

/* A template is not created: it would replace the whole configuration of K3s's engine. */
static int check_template(const struct graft_engine_request *request, struct graft_error *err)
{
	if (request->config.text.bytes || !graft_ends_with(request->config.path, ".tmpl"))
		return 0;
	(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "there is no %s, and a template is the engine's whole configuration",
			 request->config.path);
	return graft_with_hint(err,
			       "Copy config.toml there first, or set NO_RUNTIME_CONFIG=true: K3s and RKE2 find the "
			       "toolkit when they start.");
}

/* Reads the existing files, and what the new runtimes inherit from. */
static int load_installer_files(const struct installer_options *o, bool with_source, struct files *files,
				struct graft_error *err)
{
	struct graft_engine_request *request = &files->request;
	int rc;

	*files = (struct files){ .options = o, .arena = o->base.ctk->arena };
	*request = (struct graft_engine_request){ .enable_cdi = o->enable_cdi && o->engine->has_cdi_switch,
						  .runtime_type = o->runtime_type,
						  .has_default_table = o->legacy_config };
	if (o->drop_in_host[0] != '\0')
		request->drop_in_host_path = o->drop_in_host;
	rc = ctk_engine_file_read(&request->config, o->config, CTK_FILE_ALONE, false, files->arena, err);
	if (rc == 0 && with_source)
		rc = check_template(request, err);
	if (rc == 0)
		rc = ctk_engine_file_read(&request->drop_in, o->drop_in_path, CTK_FILE_IN_DROP_INS, false, files->arena,
					  err);
	if (rc == 0 && with_source)
		rc = read_config_sources(files, err);
	if (rc < 0)
		return graft_wrap(err, "unable to load config for runtime %s", o->engine->name);
	if (o->drop_in_path)
		request->import_is_shared = ctk_engine_has_neighbours(o->drop_in_path, ".toml");
	if (list_annotations(files, err) < 0)
		return -1;
	return installer_list_runtimes(o, files->runtimes, err);
}

/* ---- runtimes of others ---- */

/*
 * Returns the first file that registers the name, and the program. Entries that K3s has found at
 * its start do not count: at the next start it prefers the toolkit.
 */
static int find_registered(const struct files *files, const char *runtime, const char **ret_path,
			   struct graft_error *err)
{
	const struct graft_engine_request *request = &files->request;
	const struct graft_engine_text none = { NULL, 0 };
	const struct graft_engine_text *config = files->options->is_generated ? &none : &request->config.text;
	const struct graft_engine_text *texts[] = { &request->drop_in.text, config, &request->source };
	const char *names[] = { request->drop_in.path, request->config.path, request->source_name };

	*ret_path = NULL;
	for (size_t i = 0; i < GRAFT_COUNT(texts) && !*ret_path; i++) {
		if (graft_engine_registered(files->options->engine, names[i] ? names[i] : "", texts[i], runtime,
					    files->arena, ret_path, err) < 0)
			return -1;
	}
	return 0;
}

/* Whether a package of the node owns the program: only packages install it here. */
static bool is_of_package(const struct files *files, const char *program)
{
	const char *path = program[0] == '/' ? program : graft_arena_printf(files->arena, "/usr/bin/%s", program);
	struct stat st;

	return path && (graft_starts_with(path, "/usr/bin/") || graft_starts_with(path, "/bin/")) &&
	       installer_stat_below(files->options->host_root, path, &st);
}

/* A runtime that a package has registered stays as it is. */
static int find_foreign(struct files *files, bool tell, struct graft_error *err)
{
	const struct installer_options *o = files->options;

	for (size_t i = 0; i < INSTALLER_RUNTIMES; i++) {
		const struct installer_runtime *runtime = &files->runtimes[i];
		const char *path;

		if (find_registered(files, runtime->name, &path, err) < 0)
			return -1;
		files->is_foreign[i] = path && strcmp(path, runtime->path) != 0 && is_of_package(files, path);
		if (files->is_foreign[i] && tell)
			graft_warn(
			    &o->base.ctk->log,
			    "The runtime \"%s\" of %s is %s, which a package of this node has registered: "
			    "leaving it. To use %s, run 'nvidia-ctk runtime configure --runtime=%s --undo' on the node",
			    runtime->name, o->engine->name, path, o->toolkit, o->engine->name);
	}
	return 0;
}

/* ---- chains of edits ---- */

/*
 * Applies `function` for each of our runtimes to the texts of `request`, which it replaces by the
 * new ones.
 */
static int chain(const struct files *files, graft_engine_function *function, bool tell,
		 struct graft_engine_request *request, struct graft_error *err)
{
	for (size_t i = 0; i < INSTALLER_RUNTIMES; i++) {
		const struct installer_runtime *runtime = &files->runtimes[i];
		struct graft_engine_changes changes = { .n_edits = 0 };

		if (files->is_foreign[i])
			continue;
		request->runtime_name = runtime->name;
		request->runtime_path = runtime->path;
		request->set_as_default = runtime->is_default;
		if (function(request, files->arena, &changes, err) < 0)
			return -1;
		if (tell && i == 0)
			ctk_engine_tell_notes(files->options->base.ctk, &changes);
		for (size_t k = 0; k < changes.n_edits; k++) {
			if (changes.edits[k].file != &request->config)
				request->drop_in.text = changes.edits[k].text;
			else if (!files->options->is_generated)
				request->config.text = changes.edits[k].text;
		}
	}
	return 0;
}

static bool changes_text(const struct graft_engine_file *file, const struct graft_engine_text *text)
{
	return graft_engine_edit_changes(&(struct graft_engine_edit){ .file = file, .text = *text });
}

/*
 * Determines the files without anything of ours. If they do not differ from that, they are the
 * originals, which must be kept.
 */
static int strip(const struct files *files, struct graft_engine_request *ret_stripped, struct graft_error *err)
{
	*ret_stripped = files->request;
	ret_stripped->config.backup = ret_stripped->drop_in.backup = (struct graft_engine_text){ NULL, 0 };
	ret_stripped->import_is_shared = false;
	return chain(files, files->options->engine->undo, false, ret_stripped, err);
}

/* Writes the files that differ. Returns 1 if any did. */
static int save_texts(const struct files *files, const struct graft_engine_request *after,
		      const struct graft_engine_request *stripped, struct graft_error *err)
{
	const struct graft_engine_file *before[] = { &files->request.drop_in, &files->request.config };
	const struct graft_engine_file *now[] = { &after->drop_in, &after->config };
	const struct graft_engine_file *bare[] = { stripped ? &stripped->drop_in : NULL,
						   stripped ? &stripped->config : NULL };
	struct graft_engine_edit edits[GRAFT_COUNT(before)];
	struct ctk_engine_save saves[GRAFT_COUNT(before)];
	size_t n = 0;

	for (size_t i = 0; i < GRAFT_COUNT(before); i++) {
		bool has_record = before[i]->backup.bytes || before[i]->is_ours;
		bool original = stripped && !changes_text(before[i], &bare[i]->text);

		if (!before[i]->path || !changes_text(before[i], &now[i]->text))
			continue;
		edits[n] = (struct graft_engine_edit){ .file = before[i], .text = now[i]->text };
		saves[n] = (struct ctk_engine_save){ .edit = &edits[n],
						     .place = i == 1 ? CTK_FILE_ALONE : CTK_FILE_IN_DROP_INS,
						     .keep = stripped && (original || !has_record),
						     .drop = !stripped && !after->keeps_runtime };
		n++;
	}
	if (n == 0)
		return 0;
	installer_engine_note_pending(files->options);
	if (ctk_engine_files_save(saves, n, files->arena, err) < 0)
		return graft_wrap(err, "unable to flush config");
	for (size_t i = 0; i < n; i++)
		graft_info(&files->options->base.ctk->log,
			   edits[i].text.bytes ? "Wrote updated config to %s" : "Removed empty config from %s",
			   edits[i].file->path);
	return 1;
}

/* ---- CRI-O by hook ---- */

static const char *hook_file_of(const struct installer_options *o)
{
	return graft_arena_printf(o->base.ctk->arena, "%s/%s", o->hooks_dir, o->hook_filename);
}

static int write_installer_hook(const struct installer_options *o, struct graft_error *err)
{
	struct graft_arena *arena = o->base.ctk->arena;
	const char *path = hook_file_of(o), *old;
	const char *program = graft_arena_printf(arena, "%s/nvidia-container-runtime-hook", o->toolkit);
	struct graft_engine_text text;
	size_t length;

	if (!path || !program)
		return graft_fail_memory(err);
	if (graft_engine_oci_hook(program, arena, &text, err) < 0)
		return graft_wrap(err, "error creating OCI hook");
	if (graft_host_file_read(path, FILE_MAX, arena, &old, &length, NULL) > 0 && length == text.length &&
	    memcmp(old, text.bytes, length) == 0)
		return 0;
	if (graft_host_file_write(path, text.bytes, text.length, 0644, err) < 0)
		return graft_wrap(err, "error creating OCI hook");
	graft_info(&o->base.ctk->log, "Wrote the OCI hook to %s; CRI-O needs no restart", path);
	return 0;
}

/* ---- for the program ---- */

/*
 * A link of the node may lead to a place that is not mounted here: the engine would not see what is
 * written there.
 */
static int check_link(const struct installer_options *o, const char *path, struct graft_error *err)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (!path || !installer_other_root(o) || stat(path, &st) == 0)
		return 0;
	n = readlink(path, target, sizeof(target) - 1);
	/* A target in the same directory is there with it. */
	if (n <= 0 || !memchr(target, '/', (size_t)n))
		return 0;
	target[n] = '\0';
	(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "%s is a link to %s, which this container does not have", path,
			 target);
	return graft_with_hint(err, "Mount the directory of the link's target at the same path.");
}

int installer_engine_configure(const struct installer_options *o, struct graft_error *err)
{
	struct graft_engine_request after, stripped;
	struct files files;

	if (o->by_hook)
		return write_installer_hook(o, err);
	if (check_link(o, o->config, err) < 0 || check_link(o, o->drop_in_path, err) < 0 ||
	    load_installer_files(o, true, &files, err) < 0 || find_foreign(&files, true, err) < 0 ||
	    strip(&files, &stripped, err) < 0)
		return -1;
	after = files.request;
	if (chain(&files, o->engine->configure, true, &after, err) < 0)
		return -1;
	return save_texts(&files, &after, &stripped, err);
}

int installer_engine_restore(const struct installer_options *o, struct graft_error *err)
{
	struct graft_engine_request after;
	const char *hook;
	struct files files;

	if (o->by_hook) {
		hook = hook_file_of(o);
		return !hook ? graft_fail_memory(err) : graft_host_file_remove(hook, err);
	}
	if (o->engine == &graft_engine_crio && !o->set_as_default)
		return 0;
	if (load_installer_files(o, false, &files, err) < 0 || find_foreign(&files, false, err) < 0)
		return -1;
	after = files.request;
	after.keeps_runtime = o->engine == &graft_engine_crio;
	if (chain(&files, o->engine->undo, false, &after, err) < 0)
		return -1;
	return save_texts(&files, &after, NULL, err);
}

static int add_runtime(struct files *files, const char *path, struct ctk_list *list, struct graft_error *err)
{
	if (!path || graft_is_in(list->items, list->n, path))
		return 0;
	return graft_arena_push_string(files->arena, &list->items, &list->n, path) ? 0 : graft_fail_memory(err);
}

/* The text from which the engine's own runtimes are read. */
static int read_own_runtime(const struct files *files, const char *runtime, const char **ret, struct graft_error *err)
{
	const struct graft_engine_request *request = &files->request;
	bool printed = request->source.bytes != NULL;

	return graft_engine_registered(files->options->engine, printed ? request->source_name : request->config.path,
				       printed ? &request->source : &request->config.text, runtime, files->arena, ret,
				       err);
}

int installer_engine_list_runtimes(const struct installer_options *o, struct ctk_list *ret, struct graft_error *err)
{
	const char *names[] = { NULL, "runc", "crun" }, *path;
	struct files files;

	*ret = (struct ctk_list){ .n = 0 };
	if (load_installer_files(o, true, &files, err) < 0 || read_own_runtime(&files, NULL, &names[0], err) < 0)
		return -1;
	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		if (!names[i] || graft_starts_with(names[i], "nvidia"))
			continue;
		if (read_own_runtime(&files, names[i], &path, err) < 0)
			return -1;
		if (path && path[0] != '\0' && add_runtime(&files, path, ret, err) < 0)
			return -1;
	}
	if (add_runtime(&files, "runc", ret, err) < 0)
		return -1;
	return add_runtime(&files, "crun", ret, err);
}
