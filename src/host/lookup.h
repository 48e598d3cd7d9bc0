/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup: finds files by directory and name below a root with few system calls. Each directory is
 * resolved once, and a file in it costs two calls (readlinkat, fstatat). A link that leaves its
 * directory is resolved as a whole path below the root.
 */
#ifndef GRAFT_HOST_LOOKUP_H
#define GRAFT_HOST_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/root.h"

/* A directory that was looked up. If it does not exist or is not a directory, `fd` is -errno. */
struct graft_lookup_directory {
	const char *path;     /* as given */
	const char *resolved; /* below the root */
	int fd;               /* O_PATH; owned */
};

struct graft_lookup {
	const struct graft_root *root; /* borrowed */
	struct graft_arena *arena;     /* borrowed; holds the paths */
	struct graft_lookup_directory *directories;
	size_t n_directories;
	/*
	 * A lookup failed because this resource was exhausted (graft_note_shortage()), not because
	 * nothing is there
	 */
	int shortage;
};

/*
 * graft_lookup_init() starts with no directories; graft_lookup_done() closes them. The strings
 * remain in the arena.
 */
void graft_lookup_init(struct graft_lookup *lookup, const struct graft_root *root, struct graft_arena *arena);
void graft_lookup_done(struct graft_lookup *lookup);

/*
 * Returns the directory at the first `length` bytes of `path`, resolved now or earlier. NULL only
 * if memory is exhausted.
 */
const struct graft_lookup_directory *graft_lookup_directory(struct graft_lookup *lookup, const char *path,
							    size_t length);

/*
 * Looks up the file `name` (one component) in a directory, following links below the root.
 * *ret_path is its resolved path, in the lookup's arena. Returns 0 or -errno.
 */
int graft_lookup_file(struct graft_lookup *lookup, const struct graft_lookup_directory *directory, const char *name,
		      const char **ret_path, struct stat *ret_stat);

/* Likewise for a whole path, whose directory is remembered. */
int graft_lookup_path(struct graft_lookup *lookup, const char *path, const char **ret_path, struct stat *ret_stat);

/*
 * Appends the matching paths, absolute below the root, sorted by name, links not resolved. A path
 * without wildcards is looked up like any other. A directory that cannot be read has no matches.
 * Returns the number of paths appended, or -ENOMEM, or -E2BIG for more than 4096 directories read
 * or 16384 paths.
 */
int graft_pattern_expand(const struct graft_root *root, const char *pattern, struct graft_arena *arena,
			 const char ***paths, size_t *n_paths);

#endif
