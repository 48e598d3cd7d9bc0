/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replace: gives a file of the host new content, completely or not at all: a new file next to it,
 * with owner, mode, user attributes, ACL and label of the old one, is renamed over it. A reader
 * finds the old or the new content, even after a kill -9. Only if no such file can be made (the
 * directory is not writable, the owner cannot be set, the file is a mount of its own) is the file
 * written in place. apply/host_place.h determines which links are followed.
 *
 * The directory is the host's and is trusted: do not use this for a container's root.
 */
#ifndef GRAFT_APPLY_REPLACE_H
#define GRAFT_APPLY_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "apply/host_place.h"

struct graft_replacement {
	/*
	 * Suffix of the temporary name, "." NAME suffix. It is always the same, so that the next
	 * call removes what a killed process left, and at most one is left.
	 */
	const char *suffix;
	bool make;   /* make a missing file, also in place of a foreign link */
	mode_t mode; /* of a new file, not masked by the umask */
	bool sync;   /* sync to disk before the rename, for safety against power failure */
};

/*
 * Gives the file at the place these `length` bytes, creating it if `make` is set; a foreign link is
 * itself replaced. Returns 0 or -errno: -EINVAL if it is not a regular file, -EISDIR for a
 * directory, -ENOENT if it is missing and `make` is not set, -EAGAIN if another process is writing
 * the same file, -ESTALE if another file was put there since the place was found, which then has to
 * be found again. Nothing has changed on failure, unless the file could only be written in place.
 */
#define GRAFT_REPLACE_TRIES 8 /* how often to repeat after -ESTALE */
int graft_replace_at(const struct graft_host_place *place, const struct graft_replacement *how, const void *bytes,
		     size_t length);
/*
 * The same for the file `name` (one component) in the directory `dir_fd` (any descriptor of it,
 * including O_PATH; borrowed), or for the target of a link of that name. Also fails with -EACCES
 * for a link or file that must not be followed or written to.
 */
int graft_replace(int dir_fd, const char *name, const struct graft_replacement *how, const void *bytes, size_t length);

#endif
