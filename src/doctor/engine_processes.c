/* SPDX-License-Identifier: Apache-2.0 */
/* engine_processes: see engine_processes.h. */
#include "doctor/engine_processes.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/strings.h"

#define FILE_MAX      ((size_t)64 << 10)
#define TEXTS_MAX     ((size_t)64 << 20) /* all of them together */
#define PROCESSES_MAX 65536u

/* Names as in the kernel: at most 15 bytes. */
static const struct {
	const char *name;
	enum graft_engine_program program;
} programs[] = {
	{ "containerd-shim", GRAFT_ENGINE_SHIM },
	{ "conmon", GRAFT_ENGINE_CONMON },
	{ "dockerd", GRAFT_ENGINE_DOCKERD },
};

struct walk {
	const struct graft_root *host;
	struct graft_arena *arena;
	struct graft_engine_process **processes;
	size_t *n;
	bool *denied;
	size_t left; /* bytes that may still be read */
};

static int note_denied_process(bool *denied, int rc)
{
	*denied |= rc == -EACCES || rc == -EPERM;
	return rc;
}

static const char *read_of_process(struct walk *walk, const char *directory, const char *file, size_t *ret_length)
{
	const char *path = graft_arena_printf(walk->arena, "%s/%s", directory, file), *text;
	/* SECURITY: users may have any number of processes of these names. */
	size_t max = walk->left < FILE_MAX ? walk->left : FILE_MAX;

	*ret_length = 0;
	if (!path || max == 0 ||
	    note_denied_process(walk->denied,
				graft_root_read_foreign(walk->host, path, max, walk->arena, &text, ret_length)) < 0)
		return NULL;
	walk->left -= *ret_length;
	return text;
}

static bool find_engine_program(const char *comm, enum graft_engine_program *ret_program)
{
	for (size_t i = 0; i < GRAFT_COUNT(programs); i++) {
		if (!graft_starts_with(comm, programs[i].name))
			continue;
		*ret_program = programs[i].program;
		return true;
	}
	return false;
}

static void visit_process(struct walk *walk, const char *directory)
{
	struct graft_engine_process process = { .directory = directory }, *place;
	size_t length, n;
	const char *text = read_of_process(walk, directory, "comm", &length), *owner;
	struct graft_key_value *items;

	if (!text || !find_engine_program(text, &process.program))
		return;
	text = read_of_process(walk, directory, "status", &length);
	if (!text || graft_procfs_key_values(text, length, walk->arena, &items, &n) < 0 ||
	    graft_procfs_is_in_container(graft_key_value_find(items, n, "NSpid")))
		return;
	owner = graft_key_value_find(items, n, "Uid");
	process.root = owner && graft_starts_with(owner, "0\t");
	process.line.text = read_of_process(walk, directory, "cmdline", &process.line.length);
	if (process.line.length == 0)
		return;
	place = graft_arena_push(walk->arena, walk->processes, walk->n, sizeof(*place));
	if (place)
		*place = process;
}

void graft_engine_processes(const struct graft_root *host, struct graft_arena *arena,
			    struct graft_engine_process **ret_processes, size_t *ret_n, bool *ret_denied)
{
	struct walk walk = { host, arena, ret_processes, ret_n, ret_denied, TEXTS_MAX };
	const char **names, *directory;
	size_t n = 0;

	*ret_processes = NULL;
	*ret_n = 0;
	(void)note_denied_process(ret_denied, graft_root_list(host, "/proc", PROCESSES_MAX, arena, &names, &n, NULL));
	for (size_t i = 0; i < n; i++) {
		directory = isdigit((unsigned char)names[i][0]) ? graft_arena_printf(arena, "/proc/%s", names[i])
								: NULL;
		if (directory)
			visit_process(&walk, directory);
	}
}

const char *graft_engine_process_directory(const struct graft_root *host, const struct graft_engine_process *process,
					   struct graft_arena *arena, bool *ret_denied)
{
	const char *path = graft_arena_printf(arena, "%s/cwd", process->directory);
	auto_close int fd = path ? graft_root_openat(host, path, O_PATH | O_NOFOLLOW) : -ENOMEM;
	char target[PATH_MAX];
	ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, sizeof(target) - 1);

	(void)note_denied_process(ret_denied, fd < 0 ? fd : n < 0 ? -errno : 0);
	return n > 0 && target[0] == '/' ? graft_arena_strndup(arena, target, (size_t)n) : NULL;
}
