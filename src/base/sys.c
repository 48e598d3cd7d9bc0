/* SPDX-License-Identifier: Apache-2.0 */
/* sys: thin syscall(2) wrappers. Numbers above 423 are the same on every architecture (Linux 5.1 and later). */
#include "base/sys.h"

#include <sys/syscall.h>
#include <unistd.h>

#define NR_OPEN_TREE     428
#define NR_MOVE_MOUNT    429
#define NR_FSOPEN        430
#define NR_FSCONFIG      431
#define NR_FSMOUNT       432
#define NR_PIDFD_OPEN    434
#define NR_CLOSE_RANGE   436
#define NR_OPENAT2       437
#define NR_MOUNT_SETATTR 442

/* Linux 5.6: struct open_how */
struct open_how_v0 {
	uint64_t flags, mode, resolve;
};

int graft_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how_v0 how = { .flags = flags, .mode = mode, .resolve = resolve };

	return (int)syscall(NR_OPENAT2, dir_fd, path, &how, sizeof(how));
}

int graft_open_tree(int dir_fd, const char *path, unsigned int flags)
{
	return (int)syscall(NR_OPEN_TREE, dir_fd, path, flags);
}

int graft_move_mount(int from_fd, const char *from_path, int to_fd, const char *to_path, unsigned int flags)
{
	return (int)syscall(NR_MOVE_MOUNT, from_fd, from_path, to_fd, to_path, flags);
}

int graft_mount_setattr(int dir_fd, const char *path, unsigned int flags, const struct graft_mount_attr *attr)
{
	return (int)syscall(NR_MOUNT_SETATTR, dir_fd, path, flags, attr, sizeof(*attr));
}

int graft_fsopen(const char *fs_name, unsigned int flags)
{
	return (int)syscall(NR_FSOPEN, fs_name, flags);
}

int graft_fsconfig(int fd, unsigned int cmd, const char *key, const char *value, int aux)
{
	return (int)syscall(NR_FSCONFIG, fd, cmd, key, value, aux);
}

int graft_fsmount(int fd, unsigned int flags, unsigned int attr)
{
	return (int)syscall(NR_FSMOUNT, fd, flags, attr);
}

int graft_pidfd_open(pid_t pid, unsigned int flags)
{
	return (int)syscall(NR_PIDFD_OPEN, pid, flags);
}

int graft_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	return (int)syscall(NR_CLOSE_RANGE, first, last, flags);
}
