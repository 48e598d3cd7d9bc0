/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: thin wrappers around syscall(2). Numbers above 423 are the same on every architecture (Linux
 * 5.1 and later).
 */
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#define INFO_MAX 1024 /* bytes of /proc/self/fdinfo/N */

#define NR_PIDFD_SEND_SIGNAL 424
#define NR_OPEN_TREE         428
#define NR_MOVE_MOUNT        429
#define NR_FSOPEN            430
#define NR_FSCONFIG          431
#define NR_FSMOUNT           432
#define NR_PIDFD_OPEN        434
#define NR_CLOSE_RANGE       436
#define NR_OPENAT2           437
#define NR_MOUNT_SETATTR     442

/* Linux 5.6: struct open_how */
struct open_how_v0 {
	uint64_t flags, mode, resolve;
};

_Static_assert(offsetof(struct graft_statx, mount_id) == 144 && sizeof(struct graft_statx) == 256,
	       "struct statx is the kernel's");

int graft_statx(int dir_fd, const char *path, int flags, unsigned int mask, struct graft_statx *ret_st)
{
	return (int)syscall(SYS_statx, dir_fd, path, flags, mask, ret_st);
}

int graft_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags)
{
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

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

#define STATX_MOUNT_ID        0x1000u
#define STATX_MOUNT_ID_UNIQUE 0x4000u

/* statx(2) for STATX_MNT_ID or STATX_MNT_ID_UNIQUE alone, which not all C libraries define. */
static uint64_t mount_id_of_statx(int fd, unsigned int mask)
{
	struct graft_statx st = { .mask = 0 };

	return graft_statx(fd, "", AT_EMPTY_PATH, mask, &st) == 0 && (st.mask & mask) != 0 ? st.mount_id : 0;
}

/*
 * BASELINE 5.8: older kernels do not report mount ids in statx(2); fdinfo has had them since 3.15.
 */
static uint64_t mount_id_of_info(int proc_fd, const char *fdinfo, int fd)
{
	static const char member[] = "\nmnt_id:";
	char path[64], text[INFO_MAX];
	auto_close int info_fd = -1;
	const char *found;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%d", fdinfo, fd);
	info_fd = proc_fd >= 0 ? openat(proc_fd, path, O_RDONLY | O_CLOEXEC) : -1;
	n = info_fd >= 0 ? read(info_fd, text, sizeof(text) - 1) : 0;
	text[n > 0 ? n : 0] = '\0';
	found = strstr(text, member);
	return found ? strtoull(found + strlen(member), NULL, 10) : 0;
}

uint64_t graft_mount_id(int proc_fd, const char *fdinfo, int fd)
{
	uint64_t id = mount_id_of_statx(fd, STATX_MOUNT_ID);

	return id > 0 ? id : mount_id_of_info(proc_fd, fdinfo, fd);
}

#define NR_STATMOUNT        457
#define STATMOUNT_MNT_BASIC 0x2u

struct mount_question {
	uint32_t size, spare;
	uint64_t id, mask;
};

/* The kernel's struct statmount, reduced to the member needed here. */
struct mount_answer {
	uint32_t size, options;
	uint64_t mask;
	char before[32];
	uint64_t parent_id;
	char after[456];
};
_Static_assert(offsetof(struct mount_answer, parent_id) == 48 && sizeof(struct mount_answer) == 512,
	       "struct statmount is the kernel's");

bool graft_is_mounted_on(int fd, int below_fd)
{
	const struct mount_question question = { .size = sizeof(question),
						 .id = mount_id_of_statx(fd, STATX_MOUNT_ID_UNIQUE),
						 .mask = STATMOUNT_MNT_BASIC };
	uint64_t below_id = mount_id_of_statx(below_fd, STATX_MOUNT_ID_UNIQUE);
	struct mount_answer answer = { .mask = 0 };

	return question.id != 0 && below_id != 0 && question.id != below_id &&
	       syscall(NR_STATMOUNT, &question, &answer, sizeof(answer), 0) == 0 &&
	       (answer.mask & STATMOUNT_MNT_BASIC) != 0 && answer.parent_id == below_id;
}

bool graft_is_on_procfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

int graft_pidfd_open(pid_t pid, unsigned int flags)
{
	return (int)syscall(NR_PIDFD_OPEN, pid, flags);
}

int graft_pidfd_send_signal(int pid_fd, int number)
{
	return (int)syscall(NR_PIDFD_SEND_SIGNAL, pid_fd, number, NULL, 0);
}

int graft_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	return (int)syscall(NR_CLOSE_RANGE, first, last, flags);
}
