/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces: directories that are marked by an extended attribute and in use as long as a process
 * holds a shared lock on them. The end of a simulated host is the end of its stage, a tmpfs of
 * which it holds the only mounts, so inotify(7) reports it.
 */
#include "traces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"

#define MARK   "trusted.graft-sim"
#define MAX_FD 65536u /* limit on kernels without close_range(2) */

int sim_traces_open(struct sim_traces *traces, struct graft_error *err)
{
	*traces = (struct sim_traces){ .namespace_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC) };
	return traces->namespace_fd < 0 ? graft_fail_errno(err, errno, "open failed: /proc/self/ns/mnt") : 0;
}

static bool is_at(int fd, const char *path)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_ino == named.st_ino &&
	       opened.st_dev == named.st_dev;
}

/*
 * Opens the directory and locks it. Another run may have removed it meanwhile; then it is made
 * again.
 */
static int open_locked(const char *path, bool *ret_made, struct graft_error *err)
{
	for (unsigned int tries = 0; tries < 100; tries++) {
		auto_close int fd = -1;

		*ret_made = mkdir(path, 0755) == 0;
		if (!*ret_made && errno != EEXIST)
			return graft_fail_errno(err, errno, "mkdir failed: %s", path);
		/*
		 * SECURITY: every user can write to /tmp; a link there would redirect our mounts.
		 */
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return graft_fail_errno(err, errno, "open failed: %s", path);
		if (fd >= 0 && flock(fd, LOCK_SH) == 0 && is_at(fd, path))
			return TAKE_FD(fd);
	}
	return graft_fail(err, GRAFT_IO, 0, "directory changes all the time: %s", path);
}

int sim_traces_directory(struct sim_traces *traces, const char *path, struct graft_error *err)
{
	bool made;
	auto_close int fd = open_locked(path, &made, err);

	if (fd < 0)
		return -1;
	/* Without extended attributes, only the run that made a directory removes it. */
	if (made)
		(void)fsetxattr(fd, MARK, "", 0, 0);
	else if (fgetxattr(fd, MARK, NULL, 0) < 0)
		return 0;
	if (traces->n == SIM_MAX_TRACES)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "more than %u directories to make: %s", SIM_MAX_TRACES, path);
	(void)snprintf(traces->directories[traces->n].path, sizeof(traces->directories[0].path), "%s", path);
	traces->directories[traces->n++].fd = TAKE_FD(fd);
	return 0;
}

/* The last one to hold the lock removes the directory, if it is still empty. */
static void remove_directories(struct sim_traces *traces)
{
	for (size_t i = traces->n; i > 0; i--) {
		int fd = traces->directories[i - 1].fd;
		const char *path = traces->directories[i - 1].path;

		if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, path))
			(void)rmdir(path);
	}
}

/* Puts the descriptors that are needed first, and closes all others. */
static bool keep_descriptors(struct sim_traces *traces, int *events)
{
	int *needed[SIM_MAX_TRACES + 1];
	unsigned int n = 0;

	needed[n++] = events;
	for (size_t i = 0; i < traces->n; i++)
		needed[n++] = &traces->directories[i].fd;
	/* Above all of them, so that none is overwritten by another. */
	for (unsigned int i = 0; i < n; i++) {
		*needed[i] = fcntl(*needed[i], F_DUPFD_CLOEXEC, (int)(3 + n));
		if (*needed[i] < 0)
			return false;
	}
	for (unsigned int i = 0; i < n; i++) {
		if (dup3(*needed[i], (int)(3 + i), O_CLOEXEC) < 0)
			return false;
		*needed[i] = (int)(3 + i);
	}
	/* BASELINE 5.9: close_range(2). */
	if (graft_close_range(3 + n, ~0u, 0) < 0) {
		for (unsigned int fd = 3 + n; fd < MAX_FD; fd++)
			(void)close((int)fd);
	}
	return true;
}

static bool replace_standard_streams(void)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++) {
		if (null < 0 || dup2(null, fd) < 0)
			return false;
	}
	return true;
}

/*
 * Anything that it holds of the simulated host would keep that alive, so it first returns to the
 * machine's namespace.
 */
static void guard(struct sim_traces *traces, int events)
{
	char event[sizeof(struct inotify_event) + 256];
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)prctl(PR_SET_NAME, "graft-sim-guard");
	if (setns(traces->namespace_fd, CLONE_NEWNS) < 0 || chdir("/") < 0 || !replace_standard_streams() ||
	    !keep_descriptors(traces, &events))
		return;
	/* The only possible event is IN_UNMOUNT, which need not be requested. */
	while (read(events, event, sizeof(event)) < 0 && errno == EINTR)
		;
	remove_directories(traces);
}

/* A child of init only, in its own session. */
static void start_guard(struct sim_traces *traces, int events)
{
	pid_t child = fork();
	int status;

	if (child > 0)
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	if (child != 0)
		return;
	if (setsid() >= 0 && fork() == 0)
		guard(traces, events);
	_exit(0);
}

void sim_traces_guard(struct sim_traces *traces, const char *stage)
{
	auto_close int events = inotify_init1(IN_CLOEXEC);

	if (traces->n > 0 && events >= 0 && inotify_add_watch(events, stage, IN_DELETE_SELF) >= 0)
		start_guard(traces, events);
	for (size_t i = 0; i < traces->n; i++)
		(void)close(traces->directories[i].fd);
	(void)close(traces->namespace_fd);
}
