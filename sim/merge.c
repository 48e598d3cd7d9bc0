/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge: the driver's files over the host's directories, as deep in the tree as possible: by overlays, or where the kernel refuses them by
 * directories of links. Knows nothing of drivers.
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

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "formats/procfs.h"
#include "run_parts.h"

#define MAX_DEPTH       16u
#define MOUNTINFO_MAX   ((size_t)8 * 1024 * 1024)
#define MAX_KEPT_MOUNTS 256u

enum verdict { NOTHING_TO_DO, LOOK_BELOW, NEEDS_OVERLAY };

/* What one entry of the stage asks of the directory that it is in. */
static enum verdict judge(const char *directory, const char *name)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct stat staged, host;

	(void)snprintf(from, sizeof(from), SIM_STAGE_ROOT "%s/%s", directory, name);
	(void)snprintf(to, sizeof(to), "%s/%s", directory, name);
	if (lstat(from, &staged) < 0)
		return NOTHING_TO_DO;
	if (lstat(to, &host) < 0)
		return NEEDS_OVERLAY;
	if (S_ISDIR(staged.st_mode) && S_ISDIR(host.st_mode))
		return LOOK_BELOW;
	/* A directory of the driver's where the host has a link to one (lib64 -> lib): the host's way is kept. */
	if (S_ISDIR(staged.st_mode) && S_ISLNK(host.st_mode))
		return LOOK_BELOW;
	return NEEDS_OVERLAY;
}

/* --- mounts below a directory that is about to be covered --- */

struct kept_mounts {
	size_t n;
	const char *paths[MAX_KEPT_MOUNTS];
	struct graft_arena *arena;
};

/* Where the n-th one waits. */
static void waiting_place(size_t n, char place[64])
{
	(void)snprintf(place, 64, SIM_STAGE "/kept-%zu", n);
}

static void keep_mount(struct kept_mounts *kept, const char *path)
{
	struct stat status;
	char place[64];
	int fd;

	waiting_place(kept->n, place);
	if (stat(path, &status) < 0)
		return;
	if (S_ISDIR(status.st_mode)) {
		if (mkdir(place, 0755) < 0)
			return;
	} else {
		fd = open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			return;
		(void)close(fd);
	}
	if (mount(path, place, NULL, MS_BIND, NULL) == 0)
		kept->paths[kept->n++] = path;
}

static void keep_mounts(struct kept_mounts *kept, const char *directory)
{
	auto_close int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	struct graft_mountinfo *mounts = NULL;
	size_t length = strlen(directory), n_bytes, n = 0;
	const char *text;

	kept->arena = graft_arena_new(2 * MOUNTINFO_MAX);
	if (!kept->arena || fd < 0 || graft_read_fd(fd, MOUNTINFO_MAX, kept->arena, &text, &n_bytes) < 0 ||
	    graft_procfs_mountinfo(text, n_bytes, kept->arena, &mounts, &n) < 0)
		return;
	for (size_t i = 0; i < n && kept->n < MAX_KEPT_MOUNTS; i++) {
		if (strncmp(mounts[i].mount_point, directory, length) == 0 && mounts[i].mount_point[length] == '/')
			keep_mount(kept, mounts[i].mount_point);
	}
}

/* In the order in which they were made, each onto its place in what lies above it now. */
static void put_back(struct kept_mounts *kept)
{
	char place[64];

	for (size_t i = 0; i < kept->n; i++) {
		waiting_place(i, place);
		(void)mount(place, kept->paths[i], NULL, MS_MOVE, NULL);
		(void)umount2(place, MNT_DETACH); /* where it could not be moved */
		(void)remove(place);
	}
	kept->arena = graft_arena_free(kept->arena);
}

/* --- overlays --- */

/* "/usr/lib" -> "usr-lib", unique for the directories that occur */
static void flat_name(const char *directory, char *out, size_t size)
{
	(void)snprintf(out, size, "%s", directory + 1);
	for (char *c = out; *c != '\0'; c++) {
		if (*c == '/')
			*c = '-';
	}
}

static int mount_overlay(const char *directory, bool writable)
{
	char name[PATH_MAX], upper[PATH_MAX + 64], work[PATH_MAX + 64], options[4 * PATH_MAX];

	flat_name(directory, name, sizeof(name));
	(void)snprintf(upper, sizeof(upper), SIM_STAGE "/upper-%s", name);
	(void)snprintf(work, sizeof(work), SIM_STAGE "/work-%s", name);
	if (writable && (mkdir(upper, 0755) < 0 || mkdir(work, 0700) < 0))
		return -1;
	if (writable)
		(void)snprintf(options, sizeof(options), "lowerdir=" SIM_STAGE_ROOT "%s:%s,upperdir=%s,workdir=%s",
			       directory, directory, upper, work);
	else
		(void)snprintf(options, sizeof(options), "lowerdir=" SIM_STAGE_ROOT "%s:%s", directory, directory);
	return mount("graft-sim", directory, "overlay", writable ? 0 : MS_RDONLY, options);
}

static int cover_by_overlay(const char *directory)
{
	struct kept_mounts kept = { .n = 0 };
	int rc, saved;

	keep_mounts(&kept, directory);
	rc = mount_overlay(directory, true);
	if (rc < 0)
		rc = mount_overlay(directory, false);
	saved = errno;
	put_back(&kept);
	errno = saved;
	return rc;
}

/* --- directories of links --- */

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A link of the host is copied, so that it still counts from its place; anything else is linked to where it can be seen. */
static int link_host_entry(const char *from, const char *to)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof(target) - 1);

	if (n >= 0)
		target[n] = '\0';
	return symlink(n >= 0 ? target : from, to) < 0 && errno != EEXIST ? -1 : 0;
}

/* directory/name; false when that is too long. */
static bool join(char *path, size_t size, const char *directory, const char *name)
{
	int length = snprintf(path, size, "%s/%s", directory, name);

	if (length > 0 && (size_t)length < size)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

static int link_host_entries(const char *host, const char *farm)
{
	char from[PATH_MAX], to[PATH_MAX];
	auto_dir DIR *dir = opendir(host);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (is_dots(entry->d_name))
			continue;
		if (!join(from, sizeof(from), host, entry->d_name) || !join(to, sizeof(to), farm, entry->d_name) ||
		    link_host_entry(from, to) < 0)
			return -1;
	}
	return 0;
}

/* The driver's own entries are hard links: what they resolve to lies in the directory itself. */
static int build_farm(const char *staged, const char *host, const char *farm, unsigned int depth)
{
	char from[PATH_MAX], below[PATH_MAX], to[PATH_MAX];
	auto_dir DIR *dir = opendir(staged);
	const struct dirent *entry;
	struct stat status;

	if (!dir || depth == MAX_DEPTH || mkdir(farm, 0755) < 0)
		return -1;
	while ((entry = readdir(dir))) {
		if (is_dots(entry->d_name))
			continue;
		if (!join(from, sizeof(from), staged, entry->d_name) ||
		    !join(below, sizeof(below), host, entry->d_name) || !join(to, sizeof(to), farm, entry->d_name))
			return -1;
		if (lstat(from, &status) < 0)
			return -1;
		if (S_ISDIR(status.st_mode) ? build_farm(from, below, to, depth + 1) < 0 : link(from, to) < 0)
			return -1;
	}
	return link_host_entries(host, farm);
}

static int cover_by_links(const char *directory)
{
	char name[PATH_MAX], staged[PATH_MAX + 64], host[PATH_MAX + 64], farm[PATH_MAX + 64];

	flat_name(directory, name, sizeof(name));
	(void)snprintf(staged, sizeof(staged), SIM_STAGE_ROOT "%s", directory);
	(void)snprintf(host, sizeof(host), SIM_STAGE "/host-%s", name);
	(void)snprintf(farm, sizeof(farm), SIM_STAGE "/links-%s", name);
	if (mkdir(host, 0755) < 0 || mount(directory, host, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -1;
	if (build_farm(staged, host, farm, 0) < 0)
		return -1;
	return mount(farm, directory, NULL, MS_BIND, NULL);
}

static int cover(const char *directory, bool overlays, struct graft_error *err)
{
	if (overlays && cover_by_overlay(directory) == 0)
		return 0;
	if (cover_by_links(directory) == 0)
		return 0;
	return graft_fail_errno(err, errno, "mount operation failed: %s", directory);
}

static int merge(const char *directory, bool overlays, unsigned int depth, struct graft_error *err)
{
	char path[PATH_MAX];
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	if (!join(path, sizeof(path), SIM_STAGE_ROOT, directory + 1))
		return 0;
	dir = opendir(path);
	if (!dir || depth == MAX_DEPTH)
		return 0;
	while ((entry = readdir(dir))) {
		if (!is_dots(entry->d_name) && judge(directory, entry->d_name) == NEEDS_OVERLAY)
			return cover(directory, overlays, err);
	}
	rewinddir(dir);
	while ((entry = readdir(dir))) {
		if (is_dots(entry->d_name) || judge(directory, entry->d_name) != LOOK_BELOW)
			continue;
		if (!join(path, sizeof(path), directory, entry->d_name))
			continue;
		if (merge(path, overlays, depth + 1, err) < 0)
			return -1;
	}
	return 0;
}

int sim_merge(const char *directory, bool overlays, struct graft_error *err)
{
	struct stat host;

	if (stat(directory, &host) < 0 || !S_ISDIR(host.st_mode))
		return 0;
	return merge(directory, overlays, 0, err);
}

void sim_merge_if_possible(const char *directory, bool overlays)
{
	struct graft_error err;

	if (overlays)
		(void)sim_merge(directory, true, &err);
}
