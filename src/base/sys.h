/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: system calls that glibc 2.36 and older, or musl, do not wrap, with our own constants. Each
 * returns what the kernel returns: a value >= 0, or -1 with errno. Names and arguments are those of
 * the man pages.
 */
#ifndef GRAFT_BASE_SYS_H
#define GRAFT_BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GRAFT_RESOLVE_NO_XDEV       0x01u
#define GRAFT_RESOLVE_NO_MAGICLINKS 0x02u
#define GRAFT_RESOLVE_NO_SYMLINKS   0x04u
#define GRAFT_RESOLVE_IN_ROOT       0x10u

#define GRAFT_OPEN_TREE_CLONE         0x1u
#define GRAFT_MOVE_MOUNT_F_EMPTY_PATH 0x04u
#define GRAFT_MOVE_MOUNT_T_EMPTY_PATH 0x40u
#define GRAFT_MOVE_MOUNT_SET_GROUP    0x100u
#define GRAFT_MOUNT_ATTR_RDONLY       0x01ull
#define GRAFT_MOUNT_ATTR_NOSUID       0x02ull
#define GRAFT_MOUNT_ATTR_NODEV        0x04ull
#define GRAFT_MOUNT_ATTR_NOEXEC       0x08ull

#define GRAFT_RENAME_NOREPLACE 0x1u
#define GRAFT_RENAME_EXCHANGE  0x2u

struct graft_mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

#define GRAFT_STATX_TYPE      0x001u
#define GRAFT_STATX_INO       0x100u
#define GRAFT_STATX_BTIME     0x800u
#define GRAFT_STATX_DONT_SYNC 0x4000 /* AT_STATX_DONT_SYNC */

/*
 * struct statx under a name of our own: musl only has it since 1.2.5, and <linux/stat.h> conflicts
 * with <sys/stat.h>.
 */
struct graft_statx_time {
	int64_t s;
	uint32_t ns;
	int32_t unused;
};

struct graft_statx {
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, unused;
	uint64_t ino, size, blocks, attributes_mask;
	struct graft_statx_time atime, btime, ctime, mtime;
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t mount_id;
	uint64_t more[13];
};

/* Documented in the man pages: openat2(2), open_tree(2), and so on. */
int graft_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve);
int graft_open_tree(int dir_fd, const char *path, unsigned int flags);
int graft_move_mount(int from_fd, const char *from_path, int to_fd, const char *to_path, unsigned int flags);
int graft_mount_setattr(int dir_fd, const char *path, unsigned int flags, const struct graft_mount_attr *attr);
int graft_fsopen(const char *fs_name, unsigned int flags);
int graft_fsconfig(int fd, unsigned int cmd, const char *key, const char *value, int aux);
int graft_fsmount(int fd, unsigned int flags, unsigned int attr);
/*
 * The id of the mount that `fd` is on, as in the mount table; 0 if it cannot be determined. Older
 * kernels report it in our own fdinfo, whose path below `proc_fd` (-1 = none) is `fdinfo`.
 */
uint64_t graft_mount_id(int proc_fd, const char *fdinfo, int fd);
/*
 * Returns whether the mount that `fd` is on was made on the mount that `below_fd` is on, with
 * nothing between them. BASELINE 6.8: older kernels do not report this, and no kernel reports it
 * for mounts of another namespace.
 */
bool graft_is_mounted_on(int fd, int below_fd);
/* Returns whether `fd`, of a file of any kind, is on a procfs. */
bool graft_is_on_procfs(int fd);
int graft_pidfd_open(pid_t pid, unsigned int flags);
int graft_pidfd_send_signal(int pid_fd, int number);
int graft_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags);
int graft_statx(int dir_fd, const char *path, int flags, unsigned int mask, struct graft_statx *ret_st);
int graft_close_range(unsigned int first, unsigned int last, unsigned int flags);

#endif
