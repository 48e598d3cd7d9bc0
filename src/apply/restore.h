/* SPDX-License-Identifier: Apache-2.0 */
/* restore: puts something back under its name that was renamed over and of which only a descriptor is left. */
#ifndef GRAFT_APPLY_RESTORE_H
#define GRAFT_APPLY_RESTORE_H

/*
 * Puts the object of `old_fd` (O_PATH|O_NOFOLLOW) back at `name` in `parent_fd`, over what is there: as another hard link of the same inode
 * while it has one, else as a copy. `proc_fd` is our /proc/self/fd. Copies at most 64 MiB of data; holes are kept. 0 or -errno.
 */
int graft_restore(int proc_fd, int old_fd, int parent_fd, const char *name);

/* Puts a symbolic link that says `text` at `name`, over a link or file that is there. 0 or -errno. */
int graft_restore_link(int parent_fd, const char *name, const char *text);

#endif
