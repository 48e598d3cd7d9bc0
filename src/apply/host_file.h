/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_file: files of the host that a command reads and writes whole: engines' configurations, CDI specs. Never for what lies in a
 * container.
 */
#ifndef GRAFT_APPLY_HOST_FILE_H
#define GRAFT_APPLY_HOST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * Reads at most `max` bytes of a regular file, links followed. The bytes are in `arena`, followed by a NUL that is not counted. 1; 0 when
 * nothing is there (then the results are NULL and 0); -1: "cannot read PATH", GRAFT_TOO_BIG.
 */
int graft_host_file_read(const char *path, size_t max, struct graft_arena *arena, const char **ret_bytes,
			 size_t *ret_length, struct graft_error *err);

/*
 * Writes a file whole or not at all: a new file beside it (its name begins with "." and ends in ".tmp", so that no engine takes it for one of
 * its own), on the disk before it is renamed over it. Owner, mode, attributes, ACL and label of an existing file are kept, a link is followed; where a rename
 * is impossible (a bind-mounted file, a directory that cannot be written) it is written in place; apply/replace.h has the rules. Missing
 * parents are made (0755). `mode` is that of a new file; neither is masked by the umask. A path that leads to a pipe or a character device (/dev/stdout)
 * is written to.
 *
 * -1: "cannot write PATH". Nothing has changed then, but that parents may have been made.
 */
int graft_host_file_write(const char *path, const void *bytes, size_t length, mode_t mode, struct graft_error *err);

/* Removes a file, not what a link of that name leads to. What is not there is removed already. 0, or -1: "cannot remove PATH". */
int graft_host_file_remove(const char *path, struct graft_error *err);

#endif
