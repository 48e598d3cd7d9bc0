/* SPDX-License-Identifier: Apache-2.0 */
/* program: environment, descriptors and execve(2) of the hook. Knows nothing of containers. */
#include "cli/hook/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/sys.h"
#include "cli/cli.h"
#include "cli/hook/command.h"

#define DESCRIPTORS_MAX 4096

/*
 * SECURITY: all that we read. A hook without an environment of its own can be run with that of the container (CVE-2025-23266), and the
 * libraries that we use have variables of their own, for debugging, other buses and other configurations.
 */
static const char *const names[] = { "PATH", "NVIDIA_CTK_CONFIG_FILE_PATH", "XDG_CONFIG_HOME", "NVC_DEBUG_FILE",
				     "CUDA_MPS_PIPE_DIRECTORY" };
_Static_assert(GRAFT_COUNT(names) <= HOOK_KEPT_MAX, "each may occur once");

static bool is_variable(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

void hook_environment_take(struct hook_environment *environment)
{
	size_t n = 0;

	environment->given = environ;
	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		for (char **entry = environ; *entry; entry++) {
			if (is_variable(*entry, names[i])) {
				environment->kept[n++] = *entry;
				break;
			}
		}
	}
	environment->kept[n] = NULL;
	environ = environment->kept;
	if (graft_close_range(STDERR_FILENO + 1, ~0u, 0) == 0)
		return;
	/* BASELINE 5.9: no close_range. */
	for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS_MAX; fd++)
		(void)close(fd);
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

static bool has_directory(const char *path, const char *directory, size_t length)
{
	while (path) {
		if (strcspn(path, ":") == length && strncmp(path, directory, length) == 0)
			return true;
		path = strchr(path, ':');
		path += path != NULL;
	}
	return false;
}

/* Each directory of `path` with `prefix` before it, behind what `list` has. */
static const char *append(const char *list, const char *prefix, const char *path, const char *unless_in,
			  struct graft_arena *arena)
{
	while (list && path) {
		size_t length = strcspn(path, ":");

		if (length > 0 && !(unless_in && has_directory(unless_in, path, length)))
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
	const char *directories = append(append("", "", given, NULL, arena), "", usual, given, arena);
	const char *prefix = root ? graft_path_clean("/", root, arena) : "/";
	const char *list = "";

	if (!directories || !prefix)
		return NULL;
	if (strcmp(prefix, "/") != 0)
		list = append(list, prefix, directories, NULL, arena);
	return append(list, "", directories, NULL, arena);
}

static int set_variable(const char *name, const char *value, struct graft_error *err)
{
	return setenv(name, value, 1) < 0 ? graft_fail_memory(err) : 0;
}

int hook_environment_apply(const struct graft_config *config, struct graft_arena *arena, struct graft_error *err)
{
	const struct graft_strings *entries = &config->cli.environment;

	for (size_t i = 0; i < entries->n; i++) {
		for (size_t n = 0; n < GRAFT_COUNT(names); n++) {
			if (is_variable(entries->items[i], names[n]) &&
			    set_variable(names[n], entries->items[i] + strlen(names[n]) + 1, err) < 0)
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
	char **variables = hook_environment_make(environment->given, &config->cli.environment, arena);

	if (!variables)
		return graft_fail_memory(err);
	/* SECURITY: the working directory is the bundle; a name without a directory would be looked for there. */
	if (argv[0][0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0,
				  "exec failed: %s: nvidia-container-cli.path must be an absolute path", argv[0]);
	(void)execve(argv[0], argv, variables);
	return graft_fail_errno(err, errno, "exec failed: %s", argv[0]);
}
