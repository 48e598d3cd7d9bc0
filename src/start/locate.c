/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locate: finds the programs that the runtime needs, and recognises itself among them. Runs none.
 */
#include "start/locate.h"

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
#include "base/path.h"
#include "formats/loader/elf.h"
#include "start/find_program.h"
#include "start/installed.h"

#define SELF         "nvidia-container-runtime"
#define DEFAULT_HOOK "/usr/bin/nvidia-container-runtime-hook"
#define DEFAULT_CDI  "/usr/bin/nvidia-cdi-hook"

/* ---- the low-level runtime ---- */

struct candidates {
	struct stat self;
	bool self_known;
	const struct graft_log *log;
	char refused[PATH_MAX]; /* the last candidate that was this program */
};

/*
 * SPEC runtime-and-hook Q19: a runtime that executes itself, under whatever name, would never end.
 * Other programs of this kind are excluded as well, since they read the same list.
 */
static bool is_other(void *arg, const char *path, const struct stat *st)
{
	struct candidates *candidates = arg;
	bool same = candidates->self_known && st->st_dev == candidates->self.st_dev &&
		    st->st_ino == candidates->self.st_ino;

	if (!same && strncmp(graft_path_name(path), SELF, strlen(SELF)) != 0)
		return true;
	graft_debug(candidates->log, "ignoring low-level runtime '%s': it is this program itself", path);
	(void)snprintf(candidates->refused, sizeof(candidates->refused), "%s", path);
	return false;
}

static bool find_candidate(struct candidates *candidates, const char *name, char path[PATH_MAX])
{
	struct stat st;

	if (name[0] == '\0')
		return false;
	if (!strchr(name, '/'))
		return graft_find_program(name, is_other, candidates, candidates->log, path);
	return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && graft_is_program(path, &st) &&
	       is_other(candidates, path, &st);
}

static bool is_script(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char head[2];

	return fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head) && head[0] == '#' && head[1] == '!';
}

static const char *file_of_program(const struct graft_config *config)
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
			candidates->refused[0] != '\0' ? " is this program itself)" : "", file_of_program(config));
	graft_buffer_done(&list);
	return rc;
}

int graft_locate_low_level(const struct graft_config *config, const struct graft_log *log, struct graft_arena *arena,
			   const char **ret_path, bool *ret_script, struct graft_error *err)
{
	const struct graft_strings *names = &config->runtime.runtimes;
	struct candidates candidates = { .log = log };
	char path[PATH_MAX];

	if (names->n == 0)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "error locating runtime: at least one runtime candidate must be specified "
				  "(nvidia-container-runtime.runtimes in %s)",
				  file_of_program(config));
	candidates.self_known = stat("/proc/self/exe", &candidates.self) == 0;
	for (size_t i = 0; i < names->n; i++) {
		if (!find_candidate(&candidates, names->items[i], path)) {
			graft_debug(log, "low-level runtime '%s' does not exist", names->items[i]);
			continue;
		}
		*ret_script = is_script(path);
		*ret_path = graft_arena_strdup(arena, path);
		graft_debug(log, "low-level runtime is '%s'%s", path, *ret_script ? ", a script" : "");
		return *ret_path ? 0 : graft_fail_memory(err);
	}
	return fail_candidates(config, &candidates, err);
}

bool graft_low_level_ignores_unread_state(const char *path, struct graft_arena *arena)
{
	struct graft_elf elf = { .is_go = false };
	auto_close int fd = -1;

	if (strcmp(graft_path_name(path), "runc") != 0)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && graft_elf_read_fd(fd, path, arena, &elf, NULL) == 0 && elf.is_go;
}

bool graft_low_level_stops_before_start(const char *path)
{
	return strcmp(graft_path_name(path), "runc") == 0 || strcmp(graft_path_name(path), "crun") == 0;
}

int graft_locate_refuse_loop(const struct graft_config *config, struct graft_error *err)
{
	const char *wrapper = secure_getenv(GRAFT_WRAPPER_VARIABLE);

	if (!wrapper)
		return 0;
	return graft_fail(
	    err, GRAFT_INVALID, 0,
	    "error locating runtime: '%s' is a script that calls this program again, which would never end; "
	    "name a low-level runtime by its path in nvidia-container-runtime.runtimes of %s",
	    wrapper, file_of_program(config));
}

/* ---- hooks ---- */

static const char *find_program(const char *name, const char *otherwise, const struct graft_log *log,
				struct graft_arena *arena)
{
	char path[PATH_MAX];

	return graft_arena_strdup(arena, graft_find_program(name, NULL, NULL, log, path) ? path : otherwise);
}

const char *graft_locate_hook(const struct graft_config *config, const struct graft_log *log, struct graft_arena *arena)
{
	const char *configured = config->hook.path;

	if (configured[0] == '/')
		return configured;
	return find_program(configured[0] != '\0' ? configured : graft_path_name(DEFAULT_HOOK), DEFAULT_HOOK, log,
			    arena);
}

/* The program `name` in the directory of `path`; NULL: not there, or out of memory. */
static const char *find_beside_own_program(const char *directory, const char *name, struct graft_arena *arena)
{
	char *beside = graft_arena_printf(arena, "%s/%s", directory, name);
	struct stat st;

	return beside && graft_is_program(beside, &st) ? beside : NULL;
}

const char *graft_locate_cdi_hook(const struct graft_config *config, const struct graft_log *log,
				  struct graft_arena *arena)
{
	const char *configured = config->ctk_path, *name = graft_path_name(DEFAULT_CDI), *found = NULL;
	char directory[PATH_MAX];

	if (configured[0] == '/' && strcmp(graft_path_name(configured), "nvidia-ctk") != 0)
		return configured;
	if (graft_own_directory(directory))
		found = find_beside_own_program(directory, name, arena);
	if (!found)
		found = find_program(name, DEFAULT_CDI, log, arena);
	graft_debug(log, "hook program is '%s'", found ? found : "");
	return found;
}
