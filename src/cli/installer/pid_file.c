/* SPDX-License-Identifier: Apache-2.0 */
/* pid_file: one installer on a node at a time (SPEC installer-and-nri 3 step 2). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "cli/installer/installer.h"

static int make_directories(const char *path, struct graft_error *err)
{
	char part[4096];

	if (strlen(path) >= sizeof(part))
		return graft_fail(err, GRAFT_INVALID, 0, "the path of the pidfile is too long");
	for (size_t i = 1; path[i] != '\0'; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return graft_fail_errno(err, errno, "unable to create the directory of the pidfile: %s", part);
	}
	return 0;
}

int installer_pid_file_take(const struct installer_options *o, struct graft_error *err)
{
	const struct graft_log *log = &o->base.ctk->log;
	auto_close int fd = -1;
	char text[32];
	int n;

	if (make_directories(o->pid_file, err) < 0)
		return -1;
	fd = open(o->pid_file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return graft_fail_errno(err, errno, "unable to create pidfile: %s", o->pid_file);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int why = errno;

		graft_warn(log, "Unable to get exclusive lock on '%s'", o->pid_file);
		graft_warn(log, "This normally means an instance of the NVIDIA toolkit Container is already running, "
				"aborting");
		return graft_fail_errno(err, why, "unable to get flock on pidfile: %s", o->pid_file);
	}
	n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || write(fd, text, (size_t)n) != n)
		return graft_fail_errno(err, errno, "unable to write the PID to the pidfile %s", o->pid_file);
	return TAKE_FD(fd);
}
