/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_check: runs the programs of engines on files in a private directory. The engine would also
 * read the files next to a drop-in, so it reads them here too: under their real names through
 * containerd's imports, through links in CRI-O's directory.
 */
#include "cli/ctk/engine_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "cli/ctk/child.h"
#include "formats/toml/toml.h"

#define TIMEOUT_MS 30000

static int run_engine_program(struct ctk *ctk, const char *const *argv, const char *const *variables,
			      struct ctk_child_result *ret_result, struct graft_error *err)
{
	const struct ctk_child child = {
		.argv = argv, .variables = variables, .root = ctk->engine_root, .timeout_ms = TIMEOUT_MS
	};

	graft_debug(&ctk->log, "Running %s %s", argv[0], argv[1] ? argv[1] : "");
	return ctk_child_run(&child, ctk->arena, ret_result, err);
}

void ctk_engine_tell_notes(const struct ctk *ctk, const struct graft_engine_changes *changes)
{
	for (size_t i = 0; i < changes->n_notes; i++)
		graft_log_write(&ctk->log, changes->notes[i].is_warning ? GRAFT_LOG_WARN : GRAFT_LOG_INFO,
				__FILE_NAME__, __LINE__, "%s", changes->notes[i].text);
}

/* ---- the engine's configuration ---- */

/*
 * Words the failure as the reference does, with argv[0] and "[config dump]". `result` NULL: the
 * program did not run.
 */
static int fail_command(const char *const *argv, const struct ctk_child_result *result, struct graft_error *err)
{
	char words[256] = "";

	for (size_t i = 1; argv[i]; i++)
		(void)snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s", i > 1 ? " " : "", argv[i]);
	if (result)
		(void)graft_fail(err, GRAFT_PROGRAM, 0, "exit status %d: %s", result->status, result->err);
	return graft_wrap(err, "failed to run command %s [%s]", argv[0], words);
}

static int read_engine_program_output(struct ctk *ctk, const char *const *argv, struct graft_engine_request *request,
				      struct graft_error *err)
{
	struct ctk_child_result result;

	if (run_engine_program(ctk, argv, NULL, &result, err) < 0)
		return fail_command(argv, NULL, err);
	if (result.status != 0)
		return fail_command(argv, &result, err);
	request->source_name = graft_arena_printf(ctk->arena, "the output of %s", argv[0]);
	request->source = (struct graft_engine_text){ result.out, result.out_length };
	return request->source_name ? 0 : graft_fail_memory(err);
}

int ctk_engine_read_source(struct ctk *ctk, const struct graft_engine *engine, const char *executable,
			   struct graft_engine_request *request, struct graft_error *err)
{
	const char *const dump[] = { executable ? executable : "containerd", "config", "dump", NULL };
	const char *const status[] = { executable ? executable : "crio", "status", "config", NULL };
	static const char *const old_status[] = { "crio-status", "config", NULL };
	struct graft_error second = { .status = GRAFT_OK };
	char text[800];
	int rc;

	if (engine == &graft_engine_containerd) {
		rc = read_engine_program_output(ctk, dump, request, err);
	} else if (engine == &graft_engine_crio) {
		rc = read_engine_program_output(ctk, status, request, err);
		if (rc < 0 && read_engine_program_output(ctk, old_status, request, &second) == 0)
			rc = 0;
		else if (rc < 0)
			rc = graft_wrap(err, "%s; and", graft_error_text(&second, text, sizeof(text)));
	} else {
		rc = graft_fail(err, GRAFT_UNSUPPORTED, 0, "no command of %s prints its configuration", engine->name);
	}
	return rc < 0 ? graft_wrap(err, "failed to load config") : 0;
}

int ctk_engine_merges_deeply(struct ctk *ctk, const char *executable, bool *ret_deeply, struct graft_error *err)
{
	const char *const argv[] = { executable ? executable : "containerd", "--version", NULL };
	struct ctk_child_result result;
	struct graft_error why = { .status = GRAFT_OK };
	char text[800];

	*ret_deeply = false;
	if (run_engine_program(ctk, argv, NULL, &result, &why) == 0) {
		*ret_deeply = result.status == 0 && graft_engine_containerd_merges_deeply(result.out);
		return 0;
	}
	if (why.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	graft_debug(&ctk->log, "containerd's release is not known: %s", graft_error_text(&why, text, sizeof(text)));
	return 0;
}

/* ---- a private directory ---- */

struct workspace {
	struct ctk *ctk;
	const struct graft_engine_request *request;
	const struct graft_engine_changes *changes;
	const char *executable; /* NULL: the usual name */
	char path[32];
	struct graft_error *err;
};

static void workspace_done(const struct workspace *workspace)
{
	if (workspace->path[0])
		graft_host_tree_remove(AT_FDCWD, workspace->path);
}

static int open_workspace(struct workspace *workspace)
{
	(void)snprintf(workspace->path, sizeof(workspace->path), "/tmp/nvidia-ctk-XXXXXX");
	if (mkdtemp(workspace->path))
		return 0;
	workspace->path[0] = '\0';
	return graft_fail_errno(workspace->err, errno, "cannot make a directory in /tmp");
}

/* Returns the path of `name` in the private directory, or NULL if out of memory. */
static const char *path_in(const struct workspace *workspace, const char *name)
{
	return graft_arena_printf(workspace->ctk->arena, "%s/%s", workspace->path, name);
}

/* Returns the future content of the file: an edit's text, or the current text. */
static struct graft_engine_text future_of(const struct workspace *workspace, const struct graft_engine_file *file)
{
	for (size_t i = 0; i < workspace->changes->n_edits; i++) {
		if (workspace->changes->edits[i].file == file)
			return workspace->changes->edits[i].text;
	}
	return file->text;
}

/*
 * Writes a copy under a name of our choice; a file that will not exist becomes an empty one.
 * Returns its path, or NULL with the error set.
 */
static const char *write_workspace_file(const struct workspace *workspace, const char *name,
					const struct graft_engine_text *text)
{
	const char *path = path_in(workspace, name);

	if (!path) {
		(void)graft_fail_memory(workspace->err);
		return NULL;
	}
	return graft_host_file_write(path, text->bytes ? text->bytes : "", text->bytes ? text->length : 0, 0600,
				     workspace->err) < 0
		   ? NULL
		   : path;
}

/* Replaces the name of our copy in a message by that of the file it represents. */
static const char *translate(const struct workspace *workspace, const char *words)
{
	const struct graft_engine_request *request = workspace->request;
	const char *copy = strstr(words, workspace->path), *slash, *real;
	size_t length;

	if (!copy)
		return words;
	slash = copy + strlen(workspace->path);
	length = strcspn(slash, ": \t\r\n,'\"") + strlen(workspace->path);
	real = graft_starts_with(slash, "/drop-in") ? request->drop_in.path : request->config.path;
	if (!real)
		return words;
	words = graft_arena_printf(workspace->ctk->arena, "%.*s%s%s", (int)(copy - words), words, real, copy + length);
	return words ? words : "";
}

/* containerd 2 prints a log line before it reports the same error in plain text. */
static const char *after_log(const char *words)
{
	const char *end;

	while (graft_starts_with(words, "time=\"") && (end = strchr(words, '\n')) != NULL)
		words = end + 1;
	return words;
}

static int refuse_new_configuration(const struct workspace *workspace, const char *program, const char *words)
{
	(void)graft_fail(workspace->err, GRAFT_PROGRAM, 0, "%s", translate(workspace, after_log(words)));
	return graft_wrap(workspace->err, "%s rejects the new configuration; nothing was changed", program);
}

/*
 * Runs the engine. Returns 1 if it accepts the files, 0 if it is not installed, -1 if it rejects
 * them.
 */
static int ask_engine_program(const struct workspace *workspace, const char *const *argv, const char *const *variables,
			      struct ctk_child_result *ret_result)
{
	struct graft_error err = { .status = GRAFT_OK };
	char text[800];

	if (run_engine_program(workspace->ctk, argv, variables, ret_result, &err) == 0)
		return ret_result->status == 0 ? 1 : refuse_new_configuration(workspace, argv[0], ret_result->err);
	if (err.status == GRAFT_NOT_FOUND) {
		graft_debug(&workspace->ctk->log, "The new configuration was not checked: %s",
			    graft_error_text(&err, text, sizeof(text)));
		return 0;
	}
	*workspace->err = err;
	return -1;
}

/* ---- the engines ---- */

/* BASELINE Docker 23: before it, dockerd has no --validate. */
static int check_docker(const struct workspace *workspace)
{
	const struct graft_engine_text text = future_of(workspace, &workspace->request->config);
	const char *path = text.bytes ? write_workspace_file(workspace, "daemon.json", &text) : NULL;
	const char *const argv[] = { "dockerd", "--validate", "--config-file", path, NULL };
	struct ctk_child_result result = { .err = "" };
	int rc;

	if (!text.bytes)
		return 0;
	if (!path)
		return -1;
	rc = ask_engine_program(workspace, argv, NULL, &result);
	if (rc < 0 && strstr(result.err, "unknown flag: --validate")) {
		graft_debug(&workspace->ctk->log,
			    "The new configuration was not checked: this dockerd has no --validate");
		*workspace->err = (struct graft_error){ .status = GRAFT_OK };
		return 0;
	}
	return rc < 0 ? -1 : 0;
}

/* Lists the files that match a pattern of `imports`, with the new drop-in replacing the old one. */
static int expand_import(const struct workspace *workspace, const char *pattern, const char *drop_in,
			 const char ***paths, size_t *n)
{
	struct graft_arena *arena = workspace->ctk->arena;
	const char *name = workspace->request->drop_in.path;
	bool matches = name && fnmatch(pattern, name, FNM_PATHNAME) == 0;
	glob_t found = { .gl_pathc = 0 };
	bool failed = false;

	if (glob(pattern, 0, NULL, &found) == GLOB_NOSPACE)
		return graft_fail_memory(workspace->err);
	for (size_t i = 0; i < found.gl_pathc && !failed; i++) {
		if (matches && strcmp(found.gl_pathv[i], name) >= 0) {
			failed = drop_in && !graft_arena_push_string(arena, paths, n, drop_in);
			matches = false;
		}
		if (!name || strcmp(found.gl_pathv[i], name) != 0)
			failed = failed || !graft_arena_push_string(arena, paths, n, found.gl_pathv[i]);
	}
	if (matches && drop_in)
		failed = failed || !graft_arena_push_string(arena, paths, n, drop_in);
	globfree(&found);
	return failed ? graft_fail_memory(workspace->err) : 0;
}

/* Relative patterns are relative to the directory of the real file. */
static int redirect_imports(const struct workspace *workspace, struct graft_toml *toml, const char *drop_in)
{
	const char *config = workspace->request->config.path, *slash = strrchr(config, '/'), **patterns = NULL;
	struct graft_arena *arena = workspace->ctk->arena;
	const char **paths = NULL;
	size_t n_patterns = 0, n = 0;

	if (graft_toml_get_strings(toml, "imports", arena, &patterns, &n_patterns, workspace->err) < 0)
		return -1;
	for (size_t i = 0; i < n_patterns; i++) {
		const char *pattern = patterns[i];

		if (pattern[0] != '/')
			pattern = graft_arena_printf(arena, "%.*s/%s", slash ? (int)(slash - config) : 1,
						     slash ? config : ".", pattern);
		if (!pattern)
			return graft_fail_memory(workspace->err);
		if (expand_import(workspace, pattern, drop_in, &paths, &n) < 0)
			return -1;
	}
	return n_patterns == 0 ? 0 : graft_toml_set_strings(toml, "imports", paths, n, workspace->err);
}

/*
 * Checks that the configuration as containerd merged it contains the runtime, provided that the
 * dump contains the CRI plugin.
 */
static int check_dump(const struct workspace *workspace, const char *program, const struct ctk_child_result *result)
{
	static const char *const plugins[] = { "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri" };
	const char *name = workspace->request->runtime_name, *binary = "";
	auto_toml struct graft_toml *toml = NULL;

	if (graft_toml_parse("containerd config dump", result->out, result->out_length, &toml, workspace->err) < 0)
		return -1;
	for (size_t i = 0; i < GRAFT_COUNT(plugins); i++) {
		auto_buffer struct graft_buffer key = { 0 };
		enum graft_toml_kind kind = GRAFT_TOML_ABSENT;

		graft_toml_add_name(&key, "plugins");
		graft_toml_add_name(&key, plugins[i]);
		graft_toml_add_name(&key, "containerd");
		graft_toml_add_name(&key, "runtimes");
		if (graft_buffer_failed(&key))
			return graft_fail_memory(workspace->err);
		if (graft_toml_get_kind(toml, key.bytes, &kind, workspace->err) < 0)
			return -1;
		if (kind == GRAFT_TOML_ABSENT)
			continue;
		graft_toml_add_name(&key, name);
		graft_toml_add_name(&key, "options");
		graft_toml_add_name(&key, "BinaryName");
		if (graft_buffer_failed(&key))
			return graft_fail_memory(workspace->err);
		if (graft_toml_get_string(toml, key.bytes, &binary, workspace->err) < 0)
			return -1;
		if (strcmp(binary, workspace->request->runtime_path) != 0)
			return refuse_new_configuration(workspace, program,
							"it reads the files, but finds no such runtime in them");
		return 0;
	}
	return 0;
}

static int write_containerd(const struct workspace *workspace, const char **ret_path)
{
	const struct graft_engine_request *request = workspace->request;
	const struct graft_engine_text config = future_of(workspace, &request->config);
	const struct graft_engine_text drop_in = future_of(workspace, &request->drop_in);
	struct graft_engine_text text = { "", 0 };
	auto_toml struct graft_toml *toml = NULL;
	const char *drop_in_path = NULL;

	if (drop_in.bytes) {
		drop_in_path = write_workspace_file(workspace, "drop-in.toml", &drop_in);
		if (!drop_in_path)
			return -1;
	}
	if (graft_toml_parse(request->config.path, config.bytes ? config.bytes : "", config.bytes ? config.length : 0,
			     &toml, workspace->err) < 0 ||
	    redirect_imports(workspace, toml, drop_in_path) < 0)
		return -1;
	text.bytes = graft_toml_text(toml, &text.length);
	*ret_path = write_workspace_file(workspace, "config.toml", &text);
	return *ret_path ? 0 : -1;
}

static int check_containerd(const struct workspace *workspace, bool undo)
{
	const char *program = workspace->executable ? workspace->executable : "containerd", *path;
	struct ctk_child_result result;
	int rc;

	if (write_containerd(workspace, &path) < 0)
		return -1;
	rc = ask_engine_program(workspace, (const char *const[]){ program, "--config", path, "config", "dump", NULL },
				NULL, &result);
	return rc <= 0 || undo ? rc : check_dump(workspace, program, &result);
}

/* Creates links to all files next to the drop-in, and the new drop-in itself. */
static int write_crio_directory(const struct workspace *workspace, const char *directory)
{
	const struct graft_engine_file *file = &workspace->request->drop_in;
	const struct graft_engine_text text = future_of(workspace, file);
	const char *slash = strrchr(file->path, '/'), *name = slash + 1, *target, *link;
	const char *old = graft_arena_strndup(workspace->ctk->arena, file->path, (size_t)(slash - file->path));
	auto_dir DIR *dir = old ? opendir(*old ? old : "/") : NULL;
	struct dirent *entry;

	if (!old)
		return graft_fail_memory(workspace->err);
	if (mkdir(directory, 0700) < 0)
		return graft_fail_errno(workspace->err, errno, "cannot make %s", directory);
	while (dir && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, name) == 0)
			continue;
		target = graft_arena_printf(workspace->ctk->arena, "%s/%s", old, entry->d_name);
		link = graft_arena_printf(workspace->ctk->arena, "%s/%s", directory, entry->d_name);
		if (!target || !link)
			return graft_fail_memory(workspace->err);
		if (symlink(target, link) < 0)
			return graft_fail_errno(workspace->err, errno, "cannot make %s", link);
	}
	name = graft_arena_printf(workspace->ctk->arena, "drop-ins/%s", name);
	if (!name)
		return graft_fail_memory(workspace->err);
	return !text.bytes || write_workspace_file(workspace, name, &text) ? 0 : -1;
}

static int check_crio(const struct workspace *workspace)
{
	const struct graft_engine_text config = future_of(workspace, &workspace->request->config);
	const char *program = workspace->executable ? workspace->executable : "crio";
	const char *path = write_workspace_file(workspace, "crio.conf", &config),
		   *directory = path_in(workspace, "drop-ins");
	struct ctk_child_result result;

	if (!path)
		return -1;
	if (!directory)
		return graft_fail_memory(workspace->err);
	if (workspace->request->drop_in.path && write_crio_directory(workspace, directory) < 0)
		return -1;
	return ask_engine_program(workspace,
				  (const char *const[]){ program, "--config", path, "--config-dir",
							 workspace->request->drop_in.path ? directory : "", "config",
							 NULL },
				  NULL, &result);
}

/*
 * Podman reads its configuration before it does anything else; the variable makes it read this file
 * only.
 */
static int check_podman(const struct workspace *workspace)
{
	const struct graft_engine_request *request = workspace->request;
	const struct graft_engine_text text = future_of(workspace,
							request->drop_in.path ? &request->drop_in : &request->config);
	const char *path = write_workspace_file(workspace, "containers.conf", &text), *variable;
	struct ctk_child_result result;

	if (!path)
		return -1;
	variable = graft_arena_printf(workspace->ctk->arena, "CONTAINERS_CONF=%s", path);
	if (!variable)
		return graft_fail_memory(workspace->err);
	return ask_engine_program(workspace, (const char *const[]){ "podman", "--version", NULL },
				  (const char *const[]){ variable, NULL }, &result);
}

int ctk_engine_check(struct ctk *ctk, const struct graft_engine *engine, const char *executable,
		     const struct graft_engine_request *request, const struct graft_engine_changes *changes, bool undo,
		     struct graft_error *err)
{
	__attribute__((cleanup(workspace_done))) struct workspace workspace = {
		.ctk = ctk, .request = request, .changes = changes, .executable = executable, .err = err
	};
	int rc;

	if (open_workspace(&workspace) < 0)
		return -1;
	if (engine == &graft_engine_docker)
		rc = check_docker(&workspace);
	else if (engine == &graft_engine_containerd)
		rc = check_containerd(&workspace, undo);
	else if (engine == &graft_engine_crio)
		rc = check_crio(&workspace);
	else if (engine == &graft_engine_podman)
		rc = check_podman(&workspace);
	else
		rc = graft_fail(err, GRAFT_UNSUPPORTED, 0, "the configuration of %s cannot be checked", engine->name);
	return rc < 0 ? -1 : 0;
}
