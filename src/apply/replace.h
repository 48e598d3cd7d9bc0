/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replace: a file of the host gets another content, whole or not at all: a new file beside it, with owner, mode, user attributes, ACL and
 * label of the old one, renamed over it. Whoever reads meanwhile, or after a kill -9, finds the old or the new content. Only where no such
 * file can be made (the directory cannot be written, the owner cannot be given, the file is a mount of its own) is it written in place. A
 * link is followed, and the file it leads to is replaced.
 *
 * The directory is the host's and is trusted: nothing here is for a container's root.
 */
#ifndef GRAFT_APPLY_REPLACE_H
#define GRAFT_APPLY_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct graft_replacement {
	const char *
	    suffix; /* of the temporary name, which is "." NAME and this: always the same one, so that what a killed process
			       left is taken away by the next, and there is never more than one */
	bool make;   /* make a file that is not there, or that a link there leads to */
	mode_t mode; /* of such a file, not masked by the umask */
	bool sync;   /* it is on the disk before it takes the old one's name, so that a power cut does no harm either */
};

/*
 * Gives the file `name` (one component) in the directory `dir_fd` (any descriptor of it, O_PATH too; borrowed) these `length` bytes.
 * 0 or -errno: -EINVAL when it is neither a regular file nor a link to one, -EISDIR for a directory, -EAGAIN when another process is
 * writing the same file where there are no nameless files. Nothing has changed then, but for a file that could only be written in place.
 */
int graft_replace(int dir_fd, const char *name, const struct graft_replacement *how, const void *bytes, size_t length);

#endif
