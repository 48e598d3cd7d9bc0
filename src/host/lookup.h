/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup: files by directory and name below a root, with few system calls: each directory is resolved once, a file in
 * it costs two calls (readlinkat, fstatat). A link that leaves its directory is resolved below the root as a whole.
 */
#ifndef GRAFT_HOST_LOOKUP_H
#define GRAFT_HOST_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/root.h"

/* A directory that was asked for. Not a directory, or absent: `fd` is -errno. */
struct graft_lookup_directory {
	const char *path;     /* as given */
	const char *resolved; /* below the root */
	int fd;               /* O_PATH; owned */
};

struct graft_lookup {
	const struct graft_root *root; /* borrowed */
	struct graft_arena *arena;     /* borrowed: holds the paths */
	struct graft_lookup_directory *directories;
	size_t n_directories;
	int shortage; /* a lookup failed for want of it, and not because nothing is there: graft_note_shortage() */
};

/* Starts empty; ends by closing the directories. The strings stay in the arena. */
void graft_lookup_init(struct graft_lookup *lookup, const struct graft_root *root, struct graft_arena *arena);
void graft_lookup_done(struct graft_lookup *lookup);
#define auto_lookup __attribute__((cleanup(graft_lookup_done)))

/* The directory, resolved now or earlier. NULL only when memory is exhausted. `length` bytes of `path` count. */
const struct graft_lookup_directory *graft_lookup_directory(struct graft_lookup *lookup, const char *path,
							    size_t length);

/*
 * The file `name` (one component) of a directory, links followed below the root. *ret_path is its resolved path, in the lookup's arena.
 * Returns 0 or -errno.
 */
int graft_lookup_file(struct graft_lookup *lookup, const struct graft_lookup_directory *directory, const char *name,
		      const char **ret_path, struct stat *ret_stat);

/* The same for a whole path; its directory is remembered. */
int graft_lookup_path(struct graft_lookup *lookup, const char *path, const char **ret_path, struct stat *ret_stat);

#endif
