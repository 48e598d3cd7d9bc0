/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices: a /dev in a tmpfs. The whole machine shares one devtmpfs, so simulated nodes must not be
 * created in it. Instead the host's nodes are created again, its mounts (pts, shm, mqueue) are
 * bound, and the simulated nodes are added.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run_parts.h"

#define NEW_DEV   SIM_STAGE "/dev"
#define MAX_DEPTH 16u

static int copy_directory(const char *from, const char *to, dev_t device, bool simulated, unsigned int depth,
			  struct graft_error *err);

static int copy_link(const char *from, const char *to, struct graft_error *err)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof(target) - 1);

	if (n < 0)
		return 0; /* removed in the meantime */
	target[n] = '\0';
	if (symlink(target, to) < 0 && errno != EEXIST)
		return graft_fail_errno(err, errno, "symlink failed: %s", to);
	return 0;
}

/* Sockets and other special files cannot be copied, so the originals are bound. */
static int bind_file(const char *from, const char *to, struct graft_error *err)
{
	auto_close int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return graft_fail_errno(err, errno, "file creation failed: %s", to);
	return sim_bind(from, to, err);
}

/* A node that may not be created again (because of a container's device cgroup) is bound. */
static int copy_node(const char *from, const char *to, const struct stat *status, struct graft_error *err)
{
	if (mknod(to, status->st_mode, status->st_rdev) < 0 && errno != EEXIST)
		return errno == EPERM ? bind_file(from, to, err) : graft_fail_errno(err, errno, "mknod failed: %s", to);
	if (chmod(to, status->st_mode & 07777) < 0 || lchown(to, status->st_uid, status->st_gid) < 0)
		return graft_fail_errno(err, errno, "chown failed: %s", to);
	return 0;
}

static int copy_entry(const char *from, const char *to, dev_t device, bool simulated, unsigned int depth,
		      struct graft_error *err)
{
	struct stat status;

	if (lstat(from, &status) < 0)
		return 0;
	if (S_ISLNK(status.st_mode))
		return copy_link(from, to, err);
	if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))
		return copy_node(from, to, &status, err);
	if (!S_ISDIR(status.st_mode))
		return bind_file(from, to, err);
	if (mkdir(to, status.st_mode & 07777) < 0 && errno != EEXIST)
		return graft_fail_errno(err, errno, "mkdir failed: %s", to);
	if (status.st_dev != device)
		return sim_bind(from, to, err);
	return copy_directory(from, to, device, simulated, depth + 1, err);
}

/* Hides the nodes of a real driver. */
static bool is_of_driver(const char *name, unsigned int depth)
{
	return depth == 0 &&
	       (strncmp(name, "nvidia", 6) == 0 || strcmp(name, "dxg") == 0 || strcmp(name, "gdrdrv") == 0);
}

static int copy_directory(const char *from, const char *to, dev_t device, bool simulated, unsigned int depth,
			  struct graft_error *err)
{
	char from_entry[PATH_MAX], to_entry[PATH_MAX];
	auto_dir DIR *dir = depth < MAX_DEPTH ? opendir(from) : NULL;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (!simulated && is_of_driver(entry->d_name, depth))
			continue;
		(void)snprintf(from_entry, sizeof(from_entry), "%s/%s", from, entry->d_name);
		(void)snprintf(to_entry, sizeof(to_entry), "%s/%s", to, entry->d_name);
		if (copy_entry(from_entry, to_entry, device, simulated, depth, err) < 0)
			return -1;
	}
	return 0;
}

int sim_replace_dev(struct graft_error *err)
{
	struct stat host, staged;

	if (stat("/dev", &host) < 0)
		return graft_fail_errno(err, errno, "stat failed: /dev");
	if (mkdir(NEW_DEV, 0755) < 0 || mount("graft-sim", NEW_DEV, "tmpfs", MS_NOSUID, "mode=0755") < 0)
		return graft_fail_errno(err, errno, "mount operation failed: " NEW_DEV);
	if (copy_directory("/dev", NEW_DEV, host.st_dev, false, 0, err) < 0)
		return -1;
	if (stat(SIM_STAGE_ROOT "/dev", &staged) == 0 &&
	    copy_directory(SIM_STAGE_ROOT "/dev", NEW_DEV, staged.st_dev, true, 0, err) < 0)
		return -1;
	if (mount(NEW_DEV, "/dev", NULL, MS_MOVE, NULL) < 0)
		return graft_fail_errno(err, errno, "mount operation failed: /dev");
	return 0;
}
