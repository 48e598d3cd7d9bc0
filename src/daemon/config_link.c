/* SPDX-License-Identifier: Apache-2.0 */
/* config_link: changes one link, and sends one signal. The caller decides when. */
#include "daemon/config_link.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apply/host_place.h"
#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/path.h"

static bool link_leads_to(const char *path, const char *target)
{
	struct stat link, there, wanted;

	return lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && stat(path, &there) == 0 &&
	       stat(target, &wanted) == 0 && there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino;
}

int config_link_set(const char *path, const char *target, struct graft_error *err)
{
	auto_host_place struct graft_host_place place = GRAFT_HOST_PLACE_INIT;
	int rc;

	if (target[0] == '\0')
		target = CONFIG_LINK_NOTHING;
	if (link_leads_to(path, target))
		return 0;
	rc = graft_host_place_find(AT_FDCWD, -1, path, GRAFT_HOST_MAKE_PARENTS | GRAFT_HOST_NO_FOLLOW, &place);
	if (rc == 0)
		rc = graft_link_replace(place.dir_fd, place.name, target);
	if (rc < 0) {
		(void)graft_fail_errno(err, -rc, "cannot link %s to %s", path, target);
		return graft_with_hint(
		    err,
		    "--config-file-dst must be in a writable directory, and must not be a directory or a mount point.");
	}
	return 1;
}

/* The first argument of a process; empty if it is not a process or has no arguments. */
static void read_first_argument(int proc_fd, const char *pid, char *buffer, size_t size)
{
	char path[64];
	auto_close int fd = -1;
	ssize_t n;

	buffer[0] = '\0';
	(void)snprintf(path, sizeof(path), "%.40s/cmdline", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buffer, size - 1) : -1;
	buffer[n > 0 ? n : 0] = '\0';
}

static bool is_started_as(const char *argument, const char *name)
{
	return argument[0] != '\0' && (strcmp(argument, name) == 0 || strcmp(graft_path_name(argument), name) == 0);
}

/*
 * "PID (NAME) STATE ...": field 22 is its start time, in ticks since boot. A process that has ended
 * counts as started later.
 */
static bool is_started_before(int proc_fd, const char *pid, const struct timespec *changed)
{
	char path[64], text[1024] = "";
	struct timespec now, since_boot;
	auto_close int fd = -1;
	const char *at;
	double started;

	(void)snprintf(path, sizeof(path), "%.40s/stat", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return false;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || clock_gettime(CLOCK_REALTIME, &now) < 0 || clock_gettime(CLOCK_BOOTTIME, &since_boot) < 0)
		return false;
	started = (double)(now.tv_sec - since_boot.tv_sec) + (double)(now.tv_nsec - since_boot.tv_nsec) / 1e9 +
		  (double)strtoull(at, NULL, 10) / (double)sysconf(_SC_CLK_TCK);
	return started < (double)changed->tv_sec + (double)changed->tv_nsec / 1e9;
}

int config_link_signal(const char *proc, const char *name, int signal, const struct timespec *changed, size_t *ret_n,
		       struct graft_error *err)
{
	auto_dir DIR *directory = opendir(proc);
	char argument[PATH_MAX];
	const struct dirent *entry;

	*ret_n = 0;
	if (!directory)
		return graft_fail_errno(err, errno, "cannot list %s", proc);
	while ((entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid())
			continue;
		read_first_argument(dirfd(directory), entry->d_name, argument, sizeof(argument));
		if (!is_started_as(argument, name) ||
		    (changed && !is_started_before(dirfd(directory), entry->d_name, changed)))
			continue;
		if (kill(pid, signal) == 0) {
			++*ret_n;
		} else if (errno != ESRCH) {
			(void)graft_fail_errno(err, errno, "cannot send signal %d to %s, process %d", signal, name,
					       (int)pid);
			return graft_with_hint(err, "Run as the user of that process, or with CAP_KILL.");
		}
	}
	return 0;
}
