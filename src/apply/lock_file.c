/* SPDX-License-Identifier: Apache-2.0 */
/* lock_file: who may have made a lock, and whether it still has its name. */
#include "apply/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAX_REMOVALS 16 /* by other processes, between open and flock */

static int explain_open(int sys)
{
	return sys == EEXIST ? -ESTALE : sys == ELOOP || sys == ENXIO || sys == EISDIR ? -EINVAL : -sys;
}

/*
 * QUIRK: with O_CREAT, the kernel refuses another user's file in a sticky directory
 * (protected_regular), so it would not be found out what is wrong with it.
 */
static int open_lock(int dir_fd, const char *name)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags);

	if (fd < 0 && errno == ENOENT)
		fd = openat(dir_fd, name, flags | O_CREAT | O_EXCL, 0600);
	return fd < 0 ? explain_open(errno) : fd;
}

/*
 * Returns -ESTALE if another process has removed the file meanwhile, so that a third one could lock
 * another.
 */
static int take_lock(int dir_fd, const char *name)
{
	auto_close int fd = open_lock(dir_fd, name);
	struct stat st, named;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_nlink == 0)
		return -ESTALE;
	/* SECURITY: any user can have given root's file this name (protected_hardlinks). */
	if (st.st_nlink != 1 || (st.st_uid != geteuid() && st.st_uid != 0))
		return -EMLINK;
	if ((st.st_mode & 07777) != 0600)
		(void)fchmod(fd, 0600); /* some file systems know no modes */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	if (fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_dev != st.st_dev ||
	    named.st_ino != st.st_ino)
		return -ESTALE;
	return TAKE_FD(fd);
}

int graft_lock_file_take(int dir_fd, const char *name)
{
	int fd = -ESTALE;

	for (int i = 0; i < MAX_REMOVALS && fd == -ESTALE; i++)
		fd = take_lock(dir_fd, name);
	return fd;
}

int graft_lock_file_fail(int rc, const char *path, struct graft_error *err)
{
	if (rc == -EINVAL)
		(void)graft_fail(err, GRAFT_INVALID, 0, "%s is not a regular file", path);
	else if (rc == -EMLINK)
		(void)graft_fail(err, GRAFT_INVALID, 0, "%s belongs to another user or has another name", path);
	else
		return graft_fail_errno(err, -rc, "%s", path);
	return graft_with_hint(err, "Remove it.");
}
