/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_file: reads and writes whole files of the host: engine configurations, CDI specs. Never use
 * it for files in a container.
 *
 * Links are followed by the rules of apply/host_place.h, at any position in a path. The error for a
 * refused link contains its path, its owner, and what to do about it.
 */
#ifndef GRAFT_APPLY_HOST_FILE_H
#define GRAFT_APPLY_HOST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * Reads at most `max` bytes of a regular file that will be written to: a link at the end is
 * followed if it is ours or root's, and refused otherwise. The bytes are in `arena`, followed by a
 * NUL that is not included in the length. Returns 1, 0 if nothing is there (the results are then
 * NULL and 0), or -1: "cannot read PATH", GRAFT_TOO_BIG.
 */
int graft_host_file_read(const char *path, size_t max, struct graft_arena *arena, const char **ret_bytes,
			 size_t *ret_length, struct graft_error *err);

/*
 * Writes a file completely or not at all: a new file next to it (its name begins with "." and ends
 * in ".tmp", so that no engine reads it) is synced to disk and renamed over it. Owner, mode,
 * attributes, ACL and label of an existing file are kept; where a rename is impossible (a
 * bind-mounted file, a directory that is not writable) it is written in place; see apply/replace.h
 * for the rules. A link at the end is followed if it is ours or root's; any other is replaced by
 * the file. Missing parents are made (0755). `mode` is that of a new file; the umask applies to
 * neither. A path that leads to a pipe or a character device (/dev/stdout) is written to.
 *
 * Fails with "cannot write PATH". Nothing has changed then, except that parents may have been made.
 */
int graft_host_file_write(const char *path, const void *bytes, size_t length, mode_t mode, struct graft_error *err);

/*
 * Opens a log for appending; makes it (0644) if nothing is there, with missing parents (0755) if
 * `make_parents`. Links are followed by the rules, as for /dev/stderr. `flags` are additional ones
 * for open(2). Returns the descriptor, or -1: "cannot log to PATH".
 */
int graft_host_log_open(const char *path, int flags, bool make_parents, struct graft_error *err);

/*
 * Removes a file; if it is a link, the link itself. Succeeds if nothing is there. Returns 0, or -1:
 * "cannot remove PATH".
 */
int graft_host_file_remove(const char *path, struct graft_error *err);

/* The same for a directory that is empty; a link is refused. */
int graft_host_folder_remove(const char *path, struct graft_error *err);

/*
 * Opens a directory for reading; it and its parents are made (0755) where they are missing. Returns
 * the descriptor, or -1: "cannot create PATH".
 */
int graft_host_folder_open(const char *path, struct graft_error *err);

/*
 * Removes `name` in `parent_fd` (AT_FDCWD is fine) and, if it is a directory, what is in it,
 * without following links. What cannot be removed stays.
 */
void graft_host_tree_remove(int parent_fd, const char *name);

#endif
