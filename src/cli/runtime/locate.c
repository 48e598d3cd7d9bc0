/* SPDX-License-Identifier: Apache-2.0 */
/* locate: which programs the runtime needs, and telling ourselves from others. Runs none of them. */
#include "cli/runtime/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "cli/find_program.h"
#include "formats/elf.h"

#define SELF         "nvidia-container-runtime"
#define DEFAULT_HOOK "/usr/bin/nvidia-container-runtime-hook"
#define DEFAULT_CDI  "/usr/bin/nvidia-cdi-hook"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- the low-level runtime ---- */

struct candidates {
	struct stat self;
	bool self_known;
	const struct graft_log *log;
	char refused[PATH_MAX]; /* the last one that was ourselves */
};

/* Q19: by whatever name, becoming ourselves would never end. The programs of our kind read the same list. */
static bool is_other(void *arg, const char *path, const struct stat *st)
{
	struct candidates *candidates = arg;
	bool same = candidates->self_known && st->st_dev == candidates->self.st_dev &&
		    st->st_ino == candidates->self.st_ino;

	if (!same && strncmp(base_name(path), SELF, strlen(SELF)) != 0)
		return true;
	graft_debug(candidates->log, "low-level runtime '%s' is passed over: it is this program itself", path);
	(void)snprintf(candidates->refused, sizeof(candidates->refused), "%s", path);
	return false;
}

static bool find_candidate(struct candidates *candidates, const char *name, char path[PATH_MAX])
{
	struct stat st;

	if (name[0] == '\0')
		return false;
	if (!strchr(name, '/'))
		return cli_find_program(name, is_other, candidates, candidates->log, path);
	return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && cli_is_program(path, &st) &&
	       is_other(candidates, path, &st);
}

static bool is_script(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char head[2];

	return fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head) && head[0] == '#' && head[1] == '!';
}

static const char *file_of(const struct graft_config *config)
{
	return config->file ? config->file : "config.toml";
}

static int fail_candidates(const struct graft_config *config, const struct candidates *candidates,
			   struct graft_error *err)
{
	struct graft_buffer list = { .max = 0 };
	int rc;

	for (size_t i = 0; i < config->runtime.runtimes.n; i++)
		graft_buffer_printf(&list, "%s%s", i == 0 ? "" : " ", config->runtime.runtimes.items[i]);
	rc = graft_fail(err, GRAFT_NOT_FOUND, 0,
			"error locating runtime: no runtime binary found from candidate list: [%s]%s%s%s; install runc "
			"or crun, or set nvidia-container-runtime.runtimes in %s",
			graft_buffer_text(&list), candidates->refused[0] != '\0' ? " (" : "", candidates->refused,
			candidates->refused[0] != '\0' ? " is this program itself)" : "", file_of(config));
	graft_buffer_done(&list);
	return rc;
}

int runtime_find_low_level(const struct graft_config *config, const struct graft_log *log, struct graft_arena *arena,
			   const char **ret_path, bool *ret_script, struct graft_error *err)
{
	const struct graft_strings *names = &config->runtime.runtimes;
	struct candidates candidates = { .log = log };
	char path[PATH_MAX];

	if (names->n == 0)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "error locating runtime: at least one runtime candidate must be specified "
				  "(nvidia-container-runtime.runtimes in %s)",
				  file_of(config));
	candidates.self_known = stat("/proc/self/exe", &candidates.self) == 0;
	for (size_t i = 0; i < names->n; i++) {
		if (!find_candidate(&candidates, names->items[i], path)) {
			graft_debug(log, "low-level runtime '%s' is not there", names->items[i]);
			continue;
		}
		*ret_script = is_script(path);
		*ret_path = graft_arena_strdup(arena, path);
		graft_debug(log, "low-level runtime is '%s'%s", path, *ret_script ? ", a script" : "");
		return *ret_path ? 0 : graft_fail_memory(err);
	}
	return fail_candidates(config, &candidates, err);
}

bool runtime_ignores_unread_state(const char *path, struct graft_arena *arena)
{
	struct graft_elf elf = { .is_go = false };
	auto_close int fd = -1;

	if (strcmp(base_name(path), "runc") != 0)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && graft_elf_read_fd(fd, path, arena, &elf, NULL) == 0 && elf.is_go;
}

bool runtime_stops_before_start(const char *path)
{
	return strcmp(base_name(path), "runc") == 0 || strcmp(base_name(path), "crun") == 0;
}

int runtime_refuse_loop(const struct graft_config *config, struct graft_error *err)
{
	const char *wrapper = secure_getenv(RUNTIME_WRAPPER_VARIABLE);

	if (!wrapper)
		return 0;
	return graft_fail(
	    err, GRAFT_INVALID, 0,
	    "error locating runtime: '%s' is a script that calls this program again, which would never end; "
	    "name a low-level runtime by its path in nvidia-container-runtime.runtimes of %s",
	    wrapper, file_of(config));
}

/* ---- hooks ---- */

static const char *find_program(const char *name, const char *otherwise, const struct graft_log *log,
				struct graft_arena *arena)
{
	char path[PATH_MAX];

	return graft_arena_strdup(arena, cli_find_program(name, NULL, NULL, log, path) ? path : otherwise);
}

const char *runtime_find_hook(const struct graft_config *config, const struct graft_log *log, struct graft_arena *arena)
{
	const char *configured = config->hook.path;

	if (configured[0] == '/')
		return configured;
	return find_program(configured[0] != '\0' ? configured : base_name(DEFAULT_HOOK), DEFAULT_HOOK, log, arena);
}

/* `name` in the directory of `path`. */
static const char *find_beside(const char *path, const char *name, struct graft_arena *arena)
{
	char *beside = graft_arena_printf(arena, "%.*s%s", (int)(base_name(path) - path), path, name);
	struct stat st;

	return beside && cli_is_program(beside, &st) ? beside : NULL;
}

const char *runtime_find_cdi_hook(const struct graft_config *config, const struct graft_log *log,
				  struct graft_arena *arena)
{
	const char *configured = config->ctk_path, *name = base_name(DEFAULT_CDI), *found = NULL;
	char self[PATH_MAX];
	ssize_t n;

	if (configured[0] == '/' && strcmp(base_name(configured), "nvidia-ctk") != 0)
		return configured;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = '\0';
		found = find_beside(self, name, arena);
	}
	if (!found)
		found = find_program(name, DEFAULT_CDI, log, arena);
	graft_debug(log, "hook program is '%s'", found ? found : "");
	return found;
}
