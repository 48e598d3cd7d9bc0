/* SPDX-License-Identifier: Apache-2.0 */
/* pid_file: one installer on a node at a time (SPEC installer-and-nri 3 step 2). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "apply/lock_file.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "cli/installer/installer.h"

int installer_pid_file_take(const struct installer_options *o, struct graft_error *err)
{
	const struct graft_log *log = &o->base.ctk->log;
	const char *directory = strchr(o->pid_file, '/') ? graft_path_directory(o->pid_file, o->base.ctk->arena) : ".";
	auto_close int directory_fd = -1, fd = -1;
	char text[32];
	int n;

	if (!directory)
		return graft_fail_memory(err);
	directory_fd = graft_host_folder_open(directory, err);
	if (directory_fd < 0)
		return graft_wrap(err, "unable to create the directory of the pidfile");
	fd = graft_lock_file_take(directory_fd, graft_path_name(o->pid_file));
	if (fd == -EWOULDBLOCK || fd == -ESTALE) {
		graft_warn(log, "Unable to get exclusive lock on '%s'", o->pid_file);
		graft_warn(log, "This normally means an instance of the NVIDIA toolkit Container is already running, "
				"aborting");
		return graft_fail_errno(err, -fd, "unable to get flock on pidfile: %s", o->pid_file);
	}
	if (fd < 0) {
		(void)graft_lock_file_fail(fd, o->pid_file, err);
		return graft_wrap(err, "unable to create pidfile");
	}
	n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || write(fd, text, (size_t)n) != n)
		return graft_fail_errno(err, errno, "unable to write the PID to the pidfile %s", o->pid_file);
	return TAKE_FD(fd);
}
