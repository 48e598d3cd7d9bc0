/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary: new files and links beside the place where they will be renamed to, under names that an image cannot have
 * prepared. Names are made again while they exist.
 */
#ifndef GRAFT_APPLY_TEMPORARY_H
#define GRAFT_APPLY_TEMPORARY_H

#include <sys/types.h>

#define GRAFT_TEMPORARY_SIZE 32 /* bytes of a name, with its end */

/* Opens a new empty file for writing (O_EXCL); `mode` is subject to the umask. Returns the descriptor or -errno. */
int graft_temporary_file(int parent_fd, mode_t mode, char *name);
/* Makes a symbolic link that says `text`. 0 or -errno. */
int graft_temporary_link(int parent_fd, const char *text, char *name);
/* Makes a special file (FIFO, socket, device). 0 or -errno. */
int graft_temporary_node(int parent_fd, mode_t mode, dev_t dev, char *name);
/* Makes another name of the file that is at path `from` in `from_fd` (a link there is followed). 0 or -errno. */
int graft_temporary_hard_link(int parent_fd, int from_fd, const char *from, char *name);

/* Writes all bytes. 0 or -errno. */
int graft_write_all(int fd, const void *bytes, size_t length);

#endif
