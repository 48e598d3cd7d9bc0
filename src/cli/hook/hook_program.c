/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_program: environment, descriptors and execve(2) of the hook. Knows nothing about containers.
 */
#include "cli/hook/hook_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "cli/descriptors.h"
#include "cli/hook/command.h"
#include "start/find_program.h"
#include "start/hook_variables.h"

static bool is_hook_variable(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool is_one_of_ours(const char *entry)
{
	for (size_t i = 0; graft_hook_variables[i]; i++)
		if (is_hook_variable(entry, graft_hook_variables[i]))
			return true;
	return false;
}

void hook_environment_forget(struct hook_environment *environment)
{
	environment->none[0] = NULL;
	environment->believed = environment->none;
	environ = environment->none;
}

void hook_environment_take(struct hook_environment *environment)
{
	environment->given = environ;
	hook_environment_forget(environment);
	cli_close_other_descriptors();
}

static bool has_string(const struct graft_json_node *list, const char *entry)
{
	GRAFT_JSON_EACH(node, list) {
		const char *string = graft_json_node_string(node);

		if (string && strcmp(string, entry) == 0)
			return true;
	}
	return false;
}

/* Whether some hook in the configuration has this variable with this value. */
static bool is_of_configuration(const struct graft_json_document *document, const char *entry)
{
	GRAFT_JSON_EACH(stage, graft_json_node_at(graft_json_document_root(document), "hooks")) {
		GRAFT_JSON_EACH(hook, stage) {
			if (has_string(graft_json_node_member(hook, "env"), entry))
				return true;
		}
	}
	return false;
}

int hook_environment_believe(struct hook_environment *environment, const struct graft_json_document *document,
			     struct graft_arena *arena, struct graft_error *err)
{
	size_t n = 0, n_believed = 0, n_read = 0;
	char **believed, **read;

	while (environment->given[n])
		n++;
	believed = graft_arena_list(arena, n + 1, sizeof(*believed));
	read = graft_arena_list(arena, n + 1, sizeof(*read));
	if (!believed || !read)
		return graft_fail_memory(err);
	for (size_t i = 0; i < n; i++) {
		if (!is_of_configuration(document, environment->given[i]))
			continue;
		believed[n_believed++] = environment->given[i];
		if (is_one_of_ours(environment->given[i]))
			read[n_read++] = environment->given[i];
	}
	environment->believed = believed;
	environ = read;
	return 0;
}

/* ---- our own program ---- */

static bool read_own_program(struct stat *ret_stat)
{
	static const char name[] = "nvidia-container-cli";
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof(name) - 1);
	char *slash;

	if (length <= 0)
		return false;
	path[length] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return false;
	memcpy(slash + 1, name, sizeof(name));
	return stat(path, ret_stat) == 0;
}

bool hook_program_is_own(const char *path)
{
	struct stat own, configured;

	if (!path || path[0] == '\0')
		return true;
	return stat(path, &configured) == 0 && read_own_program(&own) && own.st_dev == configured.st_dev &&
	       own.st_ino == configured.st_ino;
}

/* ---- environment ---- */

/* Appends to `list` each directory of `path`, prefixed, that is not in `unless_in`. */
static const char *append_directories(const char *list, const char *prefix, const char *path, const char *unless_in,
				      struct graft_arena *arena)
{
	while (list && path) {
		size_t length = strcspn(path, ":");

		if (length > 0 && !graft_list_has_bytes(unless_in, ':', path, length))
			list = graft_arena_printf(arena, "%s%s%s%.*s", list, list[0] != '\0' ? ":" : "", prefix,
						  (int)length, path);
		path = strchr(path, ':');
		path += path != NULL;
	}
	return list;
}

const char *hook_search_path(const char *path, const char *root, struct graft_arena *arena)
{
	static const char usual[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	const char *given = path ? path : "";
	const char *directories = append_directories(append_directories("", "", given, NULL, arena), "", usual, given,
						     arena);
	const char *prefix = root ? graft_path_clean("/", root, arena) : "/";
	const char *list = "";

	if (!directories || !prefix)
		return NULL;
	if (strcmp(prefix, "/") != 0)
		list = append_directories(list, prefix, directories, NULL, arena);
	return append_directories(list, "", directories, NULL, arena);
}

/* The last PATH of nvidia-container-cli.environment; NULL: none. */
static const char *path_of_configuration(const struct graft_config *config)
{
	const char *path = NULL;

	for (size_t i = 0; i < config->cli.environment.n; i++)
		if (is_hook_variable(config->cli.environment.items[i], "PATH"))
			path = config->cli.environment.items[i] + strlen("PATH=");
	return path;
}

int hook_program_find(struct graft_config *config, struct graft_arena *arena, struct graft_error *err)
{
	const char *name = config->cli.path, *at;
	const char *directories = hook_search_path(path_of_configuration(config), NULL, arena);
	struct stat st;

	if (!directories)
		return graft_fail_memory(err);
	if (!name || name[0] == '\0' || strchr(name, '/'))
		return 0;
	for (at = directories; *at != '\0'; at += at[0] == ':') {
		size_t length = strcspn(at, ":");
		const char *path = at[0] == '/' ? graft_arena_join(arena, at, length, name) : NULL;

		at += length;
		if (path && graft_is_program(path, &st)) {
			config->cli.path = path;
			return 0;
		}
	}
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	return graft_fail(err, GRAFT_NOT_FOUND, 0, "exec failed: %s: no such program in %s", name, directories);
}

static int set_variable(const char *name, const char *value, struct graft_error *err)
{
	return setenv(name, value, 1) < 0 ? graft_fail_memory(err) : 0;
}

int hook_environment_apply(const struct graft_config *config, struct graft_arena *arena, struct graft_error *err)
{
	const struct graft_strings *entries = &config->cli.environment;

	for (size_t i = 0; i < entries->n; i++) {
		for (size_t n = 0; graft_hook_variables[n]; n++) {
			const char *name = graft_hook_variables[n];

			if (is_hook_variable(entries->items[i], name) &&
			    set_variable(name, entries->items[i] + strlen(name) + 1, err) < 0)
				return -1;
		}
	}
	if (!config->cli.path || config->cli.path[0] == '\0') {
		const char *path = hook_search_path(secure_getenv("PATH"), config->cli.root, arena);

		return path ? set_variable("PATH", path, err) : graft_fail_memory(err);
	}
	return 0;
}

int hook_program_exec(const struct hook_environment *environment, const struct graft_config *config, char **argv,
		      struct graft_arena *arena, struct graft_error *err)
{
	char **variables = hook_environment_make(environment->believed, &config->cli.environment, arena);

	if (!variables)
		return graft_fail_memory(err);
	/* SECURITY: a name without a directory would be resolved in the working directory. */
	if (argv[0][0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0,
				  "exec failed: %s: nvidia-container-cli.path must be an absolute path or a name",
				  argv[0]);
	(void)execve(argv[0], argv, variables);
	return graft_fail_errno(err, errno, "exec failed: %s", argv[0]);
}
