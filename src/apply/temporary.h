/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary: new files and links next to where they will be renamed to, under names that an image
 * cannot have prepared. If a name exists, another one is tried. `name` receives
 * GRAFT_TEMPORARY_SIZE bytes.
 */
#ifndef GRAFT_APPLY_TEMPORARY_H
#define GRAFT_APPLY_TEMPORARY_H

#include <sys/types.h>

#define GRAFT_TEMPORARY_SIZE 32 /* bytes of a name, including its NUL */

/*
 * Opens a new empty file for writing (O_EXCL); `mode` is subject to the umask. Returns the
 * descriptor or -errno.
 */
int graft_temporary_file(int parent_fd, mode_t mode, char *name);
/* Makes a symbolic link that points to `text`. Returns 0 or -errno. */
int graft_temporary_link(int parent_fd, const char *text, char *name);
/*
 * Makes the symbolic link `name`, and replaces atomically what is there unless it is a directory.
 * Returns 0 or -errno.
 */
int graft_link_replace(int parent_fd, const char *name, const char *text);
/* Makes a special file (FIFO, socket, device). Returns 0 or -errno. */
int graft_temporary_node(int parent_fd, mode_t mode, dev_t dev, char *name);
/*
 * Makes another hard link to the file at path `from` in `from_fd` (a link there is followed).
 * Returns 0 or -errno.
 */
int graft_temporary_hard_link(int parent_fd, int from_fd, const char *from, char *name);

/*
 * Renames `from` to such a name. Returns 0 or -errno; -EINVAL or -ENOSYS if unsupported here
 * (renameat2(2) with RENAME_NOREPLACE).
 */
int graft_temporary_move(int parent_fd, const char *from, char *name);

/* Writes all bytes. Returns 0 or -errno. */
int graft_write_all(int fd, const void *bytes, size_t length);

#endif
