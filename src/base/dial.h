/* SPDX-License-Identifier: Apache-2.0 */
/* dial: connects to Unix sockets in the file system, however long their paths are. */
#ifndef GRAFT_BASE_DIAL_H
#define GRAFT_BASE_DIAL_H

/*
 * Connects the socket `fd` to the one whose inode is open as `place` (O_PATH). Returns 0 or -errno:
 * -ENOTSOCK for anything but a socket; -EAGAIN if `fd` is non-blocking and the queue of connections
 * is full.
 */
int graft_dial_inode(int fd, int place);
/* The same for the socket at `path`. */
int graft_dial(int fd, const char *path);

#endif
