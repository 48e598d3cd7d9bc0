/* SPDX-License-Identifier: Apache-2.0 */
/* pid_file: one installer on a node at a time (SPEC installer-and-nri 3 step 2). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "cli/installer/installer.h"

#define TRIES 16

/*
 * Opens the file that has the name now, and locks it. Returns the descriptor or -errno: -ESTALE if
 * another installer has removed it meanwhile, so that a third one could lock another file.
 */
static int lock_pid_file(int directory_fd, const char *name, bool *ret_opened)
{
	auto_close int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
	struct stat locked, named;

	*ret_opened = false;
	if (fd < 0 || fstat(fd, &locked) < 0)
		return -errno;
	if (!S_ISREG(locked.st_mode))
		return -EINVAL;
	*ret_opened = true;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	if (fstatat(directory_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_ino != locked.st_ino)
		return -ESTALE;
	return TAKE_FD(fd);
}

int installer_pid_file_take(const struct installer_options *o, struct graft_error *err)
{
	const struct graft_log *log = &o->base.ctk->log;
	const char *directory = strchr(o->pid_file, '/') ? graft_path_directory(o->pid_file, o->base.ctk->arena) : ".";
	auto_close int directory_fd = -1, fd = -ESTALE;
	bool opened = false;
	char text[32];
	int n;

	if (!directory)
		return graft_fail_memory(err);
	directory_fd = graft_host_folder_open(directory, err);
	if (directory_fd < 0)
		return graft_wrap(err, "unable to create the directory of the pidfile");
	for (int i = 0; i < TRIES && fd == -ESTALE; i++)
		fd = lock_pid_file(directory_fd, graft_path_name(o->pid_file), &opened);
	if (fd < 0 && opened) {
		graft_warn(log, "Unable to get exclusive lock on '%s'", o->pid_file);
		graft_warn(log, "This normally means an instance of the NVIDIA toolkit Container is already running, "
				"aborting");
		return graft_fail_errno(err, -fd, "unable to get flock on pidfile: %s", o->pid_file);
	}
	if (fd == -ELOOP || fd == -EINVAL || fd == -ENXIO || fd == -EISDIR) {
		(void)graft_fail(err, GRAFT_INVALID, 0, "unable to create pidfile: %s is not a regular file",
				 o->pid_file);
		return graft_with_hint(err, "Remove it.");
	}
	if (fd < 0)
		return graft_fail_errno(err, -fd, "unable to create pidfile: %s", o->pid_file);
	n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || write(fd, text, (size_t)n) != n)
		return graft_fail_errno(err, errno, "unable to write the PID to the pidfile %s", o->pid_file);
	return TAKE_FD(fd);
}
