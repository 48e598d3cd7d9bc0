/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: system calls that glibc 2.36 and older, or musl, do not wrap, with our own constants. Each returns what the
 * kernel returns: a value >= 0, or -1 with errno. Names and arguments are those of the man pages.
 */
#ifndef GRAFT_BASE_SYS_H
#define GRAFT_BASE_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GRAFT_RESOLVE_NO_XDEV       0x01u
#define GRAFT_RESOLVE_NO_MAGICLINKS 0x02u
#define GRAFT_RESOLVE_NO_SYMLINKS   0x04u
#define GRAFT_RESOLVE_BENEATH       0x08u
#define GRAFT_RESOLVE_IN_ROOT       0x10u

#define GRAFT_OPEN_TREE_CLONE         0x1u
#define GRAFT_MOVE_MOUNT_F_EMPTY_PATH 0x04u
#define GRAFT_MOVE_MOUNT_T_EMPTY_PATH 0x40u
#define GRAFT_MOUNT_ATTR_RDONLY       0x01ull
#define GRAFT_MOUNT_ATTR_NOSUID       0x02ull
#define GRAFT_MOUNT_ATTR_NODEV        0x04ull
#define GRAFT_MOUNT_ATTR_NOEXEC       0x08ull

struct graft_mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

/* No comment of ours replaces the man pages: openat2(2), open_tree(2), and so on. */
int graft_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve);
int graft_open_tree(int dir_fd, const char *path, unsigned int flags);
int graft_move_mount(int from_fd, const char *from_path, int to_fd, const char *to_path, unsigned int flags);
int graft_mount_setattr(int dir_fd, const char *path, unsigned int flags, const struct graft_mount_attr *attr);
int graft_fsopen(const char *fs_name, unsigned int flags);
int graft_fsconfig(int fd, unsigned int cmd, const char *key, const char *value, int aux);
int graft_fsmount(int fd, unsigned int flags, unsigned int attr);
int graft_pidfd_open(pid_t pid, unsigned int flags);
int graft_close_range(unsigned int first, unsigned int last, unsigned int flags);

#endif
