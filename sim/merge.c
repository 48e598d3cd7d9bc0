/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge: merges the driver's files into the host's directories: by overlays over the whole system
 * or, if the kernel refuses them, by directories of links as deep in the tree as possible. Knows
 * nothing about drivers.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/strings.h"
#include "formats/procfs.h"
#include "run_parts.h"

#define SIM_NEW_ROOT    SIM_STAGE "/new-root"
#define MAX_DEPTH       16u
#define MOUNTINFO_MAX   ((size_t)8 * 1024 * 1024)
#define MAX_KEPT_MOUNTS 256u

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Returns false if the path is too long. */
static bool join(char *path, size_t size, const char *directory, const char *name)
{
	int length = snprintf(path, size, "%s/%s", directory, name);

	if (length > 0 && (size_t)length < size)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

enum verdict { NOTHING_TO_DO, LOOK_BELOW, NEEDS_OVERLAY };

/* Decides what an entry of the stage requires of the directory that contains it. */
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
	/*
	 * Where the host has a link to a directory instead of a directory (lib64 -> lib), the link
	 * is kept.
	 */
	return S_ISDIR(staged.st_mode) && (S_ISDIR(host.st_mode) || S_ISLNK(host.st_mode)) ? LOOK_BELOW : NEEDS_OVERLAY;
}

/* --- mounts below a directory that is about to be covered --- */

struct kept_mounts {
	size_t n;
	struct {
		const char *path;
		bool overlay; /* gets one of its own when it has been moved back */
	} mounts[MAX_KEPT_MOUNTS];
	struct graft_arena *arena;
};

/*
 * Not for packages, and not suitable for an overlay: an engine makes its own overlays there, which
 * cannot be on another. /var/tmp is like /tmp.
 */
static const char *const stores[] = {
	"/var/lib/docker",  "/var/lib/containerd", "/var/lib/containers", "/var/lib/kubelet",
	"/var/lib/rancher", "/var/lib/buildkit",   "/var/lib/lxc",        "/var/lib/lxd",
	"/var/lib/incus",   "/var/lib/libvirt",    "/var/lib/machines",   "/var/lib/snapd",
	"/var/tmp",
};

/* The place where the n-th mount is kept. */
static void waiting_place(size_t n, char place[64])
{
	(void)snprintf(place, 64, SIM_STAGE "/kept-%zu", n);
}

static void keep_mount(struct kept_mounts *kept, const char *path, bool overlay)
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
	if (mount(path, place, NULL, MS_BIND | MS_REC, NULL) == 0) {
		kept->mounts[kept->n].path = path;
		kept->mounts[kept->n++].overlay = overlay && S_ISDIR(status.st_mode);
	}
}

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

static bool is_store(const char *path)
{
	for (size_t i = 0; i < GRAFT_COUNT(stores); i++) {
		if (strcmp(stores[i], path) == 0 || is_below(path, stores[i]))
			return true;
	}
	return false;
}

/* Whatever is mounted below a kept mount is kept with it. */
static bool is_kept(const struct kept_mounts *kept, const char *path)
{
	for (size_t i = 0; i < kept->n; i++) {
		if (strcmp(kept->mounts[i].path, path) == 0 || is_below(path, kept->mounts[i].path))
			return true;
	}
	return false;
}

/* A partition for /var/log, say: packages write there as well. */
static bool is_disk(const char *fs_type)
{
	static const char *const disks[] = { "ext2", "ext3", "ext4",  "xfs",      "btrfs",
					     "f2fs", "zfs",  "tmpfs", "bcachefs", "overlay" };

	return graft_is_in(disks, GRAFT_COUNT(disks), fs_type);
}

/*
 * The machine's devices come and go, and writes there are meant for the kernel: an overlay must not
 * cover them.
 */
static void keep_devices(struct kept_mounts *kept, const char *directory)
{
	auto_dir DIR *dir = strcmp(directory, "/sys/devices") == 0 ? opendir(directory) : NULL;
	const struct dirent *entry;

	while (dir && kept->arena && kept->n < MAX_KEPT_MOUNTS && (entry = readdir(dir))) {
		char staged[PATH_MAX];
		const char *path = graft_arena_printf(kept->arena, "%s/%s", directory, entry->d_name);

		if (path && entry->d_type == DT_DIR && !is_dots(entry->d_name) &&
		    join(staged, sizeof(staged), SIM_STAGE_ROOT, path + 1) && access(staged, F_OK) < 0)
			keep_mount(kept, path, false);
	}
}

/* Returns the number of mounts; also 0 if they cannot be read. */
static size_t read_mounts(struct graft_arena *arena, struct graft_mountinfo **ret_mounts)
{
	auto_close int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	size_t n_bytes, n = 0;
	const char *text;

	if (!arena || fd < 0 || graft_read_fd(fd, MOUNTINFO_MAX, arena, &text, &n_bytes) < 0 ||
	    graft_procfs_mountinfo(text, n_bytes, arena, ret_mounts, &n) < 0)
		return 0;
	return n;
}

/* The outermost mounts below a directory, and then the stores that none of them contains. */
static void keep_mounts(struct kept_mounts *kept, const char *directory)
{
	struct graft_mountinfo *mounts = NULL;
	size_t n;

	kept->arena = graft_arena_new(2 * MOUNTINFO_MAX);
	keep_devices(kept, directory);
	n = read_mounts(kept->arena, &mounts);
	for (size_t i = 0; i < n && kept->n < MAX_KEPT_MOUNTS; i++) {
		const char *path = mounts[i].mount_point;

		if (is_below(path, directory) && !is_kept(kept, path))
			keep_mount(kept, path, is_disk(mounts[i].fs_type) && !is_store(path));
	}
	for (size_t i = 0; i < GRAFT_COUNT(stores) && kept->n < MAX_KEPT_MOUNTS; i++) {
		if (is_below(stores[i], directory) && !is_kept(kept, stores[i]))
			keep_mount(kept, stores[i], false);
	}
}

static int cover_by_overlay(const char *directory, bool may_be_read_only);

/*
 * Moves the mounts back in the order in which they were made, each onto its path in the mount that
 * now covers it.
 */
static void put_back(struct kept_mounts *kept)
{
	char place[64];

	for (size_t i = 0; i < kept->n; i++) {
		waiting_place(i, place);
		(void)mount(place, kept->mounts[i].path, NULL, MS_MOVE, NULL);
		(void)umount2(place, MNT_DETACH); /* if it could not be moved */
		(void)remove(place);
	}
	for (size_t i = 0; i < kept->n; i++) {
		if (kept->mounts[i].overlay)
			(void)cover_by_overlay(kept->mounts[i].path, false);
	}
	kept->arena = graft_arena_free(kept->arena);
}

/* --- overlays --- */

/* "/usr/lib" -> "usr-lib", unique among the directories that occur */
static void flat_name(const char *directory, char *out, size_t size)
{
	(void)snprintf(out, size, "%s", directory + 1);
	for (char *c = out; *c != '\0'; c++) {
		if (*c == '/')
			*c = '-';
	}
}

/* The directory itself keeps its owner and mode. */
static int make_upper(const char *upper, const char *directory)
{
	struct stat status;

	if (stat(directory, &status) < 0 || mkdir(upper, 0755) < 0 || chown(upper, status.st_uid, status.st_gid) < 0)
		return -1;
	return chmod(upper, status.st_mode & 07777);
}

static int mount_overlay(const char *directory, bool writable)
{
	char name[PATH_MAX], upper[PATH_MAX + 64], work[PATH_MAX + 64], options[4 * PATH_MAX];
	char staged[PATH_MAX];
	bool has_staged;

	flat_name(directory, name, sizeof(name));
	(void)snprintf(upper, sizeof(upper), SIM_STAGE "/upper-%s", name);
	(void)snprintf(work, sizeof(work), SIM_STAGE "/work-%s", name);
	has_staged = join(staged, sizeof(staged), SIM_STAGE_ROOT, directory + 1) && access(staged, F_OK) == 0;
	if (writable && (make_upper(upper, directory) < 0 || mkdir(work, 0700) < 0))
		return -1;
	if (writable)
		(void)snprintf(options, sizeof(options), "lowerdir=%s%s%s,upperdir=%s,workdir=%s",
			       has_staged ? staged : "", has_staged ? ":" : "", directory, upper, work);
	else
		(void)snprintf(options, sizeof(options), "lowerdir=" SIM_STAGE_ROOT "%s:%s", directory, directory);
	return mount("graft-sim", directory, "overlay", writable ? 0 : MS_RDONLY, options);
}

static int cover_by_overlay(const char *directory, bool may_be_read_only)
{
	struct kept_mounts kept = { .n = 0 };
	int rc, saved;

	keep_mounts(&kept, directory);
	rc = mount_overlay(directory, true);
	if (rc < 0 && may_be_read_only)
		rc = mount_overlay(directory, false);
	saved = errno;
	put_back(&kept);
	errno = saved;
	return rc;
}

/* --- directories of links --- */

/*
 * A link of the host is copied, so that it still resolves from its own directory; for anything else
 * a link to the visible original is made.
 */
static int link_host_entry(const char *from, const char *to)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof(target) - 1);

	if (n >= 0)
		target[n] = '\0';
	return symlink(n >= 0 ? target : from, to) < 0 && errno != EEXIST ? -1 : 0;
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

/*
 * The driver's own entries are hard links, so that they resolve to files in the directory itself.
 */
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
	if (overlays && cover_by_overlay(directory, true) == 0)
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

static int merge_directory(const char *directory, bool overlays, struct graft_error *err)
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
		(void)merge_directory(directory, true, &err);
}

/* --- the whole system --- */

static bool is_directory(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* What is below a directory of the stage, to the place of the host to which a link leads. */
static int move_entries(const char *from, const char *to)
{
	char source[PATH_MAX], target[PATH_MAX];
	auto_dir DIR *dir = opendir(from);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (is_dots(entry->d_name))
			continue;
		if (!join(source, sizeof(source), from, entry->d_name) ||
		    !join(target, sizeof(target), to, entry->d_name) || rename(source, target) < 0)
			return -1;
	}
	return rmdir(from);
}

/* Moves a directory of the stage to where the host's link of that name leads. */
static int follow_link(const char *staged, const char *host)
{
	char magic[64], place[PATH_MAX], target[PATH_MAX];
	auto_close int fd = open(host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return 0; /* nothing of that name, or a link that leads nowhere */
	(void)snprintf(magic, sizeof(magic), "/proc/self/fd/%d", fd);
	n = readlink(magic, place, sizeof(place) - 1);
	if (n < 0)
		return -1;
	place[n] = '\0';
	if (!join(target, sizeof(target), SIM_STAGE_ROOT, place + 1) || (mkdir(target, 0755) < 0 && errno != EEXIST))
		return -1;
	return move_entries(staged, target);
}

/*
 * Where the host has a link to a directory (/usr/sbin, /usr/lib64 on some distributions), an overlay
 * would hide it behind the driver's directory. So the stage gets the host's form first.
 */
static int follow_links(const char *directory, unsigned int depth)
{
	char stage[PATH_MAX], staged[PATH_MAX], host[PATH_MAX];
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	struct stat status;

	if (!join(stage, sizeof(stage), SIM_STAGE_ROOT, directory + 1) || depth == MAX_DEPTH)
		return -1;
	dir = opendir(stage);
	while (dir && (entry = readdir(dir))) {
		bool is_link;

		if (is_dots(entry->d_name))
			continue;
		if (!join(staged, sizeof(staged), stage, entry->d_name) ||
		    !join(host, sizeof(host), directory, entry->d_name))
			return -1;
		if (!is_directory(staged) || lstat(host, &status) < 0)
			continue;
		is_link = S_ISLNK(status.st_mode);
		if ((is_link ? follow_link(staged, host) : follow_links(host, depth + 1)) < 0)
			return -1;
	}
	return 0;
}

/*
 * The directories that packages install files in. Homes, /srv, /tmp and everything else stay the
 * machine's. Without overlays of the first three, packages cannot be installed.
 */
static const char *const system_directories[] = { "/usr",  "/etc", "/var",   "/opt",   "/boot",  "/bin",
						  "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };
#define N_REQUIRED 3u

static int make_read_only(const char *directory, struct graft_error *err)
{
	if (sim_bind(directory, directory, err) < 0)
		return -1;
	if (mount(NULL, directory, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
		return graft_fail_errno(err, errno, "mount operation failed: %s", directory);
	return 0;
}

static bool is_mount_point(const char *path, const struct graft_mountinfo *mounts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(mounts[i].mount_point, path) == 0)
			return true;
	}
	return false;
}

/* Directories, and files that are mount points, are mounted in the new root as they are. */
static int fill_root(const struct graft_mountinfo *mounts, size_t n)
{
	auto_dir DIR *dir = opendir("/");
	const struct dirent *entry;
	char from[PATH_MAX], to[PATH_MAX];

	while (dir && (entry = readdir(dir))) {
		if (is_dots(entry->d_name) || !join(from, sizeof(from), "", entry->d_name) ||
		    !join(to, sizeof(to), SIM_NEW_ROOT, entry->d_name))
			continue;
		if ((is_directory(from) || is_mount_point(from, mounts, n)) &&
		    mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
			return -1;
	}
	return dir ? 0 : -1;
}

static int enter_root(void)
{
	if (chdir(SIM_NEW_ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return -1;
	/* The old root is mounted on the new one now. */
	(void)umount2(".", MNT_DETACH);
	(void)mount(NULL, "/", NULL, MS_PRIVATE, NULL);
	return chdir("/");
}

/*
 * What a package makes directly in / would stay on the machine: an overlay becomes the root of the
 * namespace. An overlay over / alone would not do, since what is mounted below / would be under it.
 * Where the kernel refuses (a chroot, an initramfs, an overlay on two others), / stays the
 * machine's.
 */
static void cover_root(void)
{
	struct graft_arena *arena = graft_arena_new(2 * MOUNTINFO_MAX);
	struct graft_mountinfo *mounts = NULL;
	size_t n = read_mounts(arena, &mounts);

	/* Unbindable, or it would be mounted in itself with all that is below /run. */
	if (make_upper(SIM_STAGE "/root-upper", "/") == 0 && mkdir(SIM_STAGE "/root-work", 0700) == 0 &&
	    mkdir(SIM_NEW_ROOT, 0755) == 0 &&
	    mount("graft-sim", SIM_NEW_ROOT, "overlay", 0,
		  "lowerdir=/,upperdir=" SIM_STAGE "/root-upper,workdir=" SIM_STAGE "/root-work") == 0 &&
	    (mount(NULL, SIM_NEW_ROOT, NULL, MS_UNBINDABLE, NULL) < 0 || fill_root(mounts, n) < 0 || enter_root() < 0))
		(void)umount2(SIM_NEW_ROOT, MNT_DETACH);
	(void)graft_arena_free(arena);
}

/* Sets `ret_done` if all required overlays could be made. */
static int cover_by_overlays(bool *ret_done, struct graft_error *err)
{
	for (size_t i = 0; i < GRAFT_COUNT(system_directories); i++) {
		const char *directory = system_directories[i];

		if (!is_directory(directory) ||
		    (follow_links(directory, 0) == 0 && cover_by_overlay(directory, false) == 0))
			continue;
		if (i < N_REQUIRED)
			return 0;
		/* Some file systems, such as that of an EFI partition, carry no overlay. */
		if (make_read_only(directory, err) < 0)
			return -1;
	}
	*ret_done = true;
	return 0;
}

/*
 * A package manager would record packages as installed that vanish with the links at the end. So
 * its database becomes read-only, and it stops before it changes anything.
 */
static int protect_packages(struct graft_error *err)
{
	static const char *const databases[] = {
		"/var/lib/dpkg", "/var/lib/apt",          "/var/cache/apt",  "/var/log/apt", "/var/cache/ldconfig",
		"/var/lib/rpm",  "/usr/lib/sysimage/rpm", "/var/lib/pacman", "/lib/apk/db",
	};

	for (size_t i = 0; i < GRAFT_COUNT(databases); i++) {
		if (is_directory(databases[i]) && make_read_only(databases[i], err) < 0)
			return -1;
	}
	return 0;
}

int sim_cover_system(bool overlays, struct graft_error *err)
{
	bool done = false;

	if (overlays && cover_by_overlays(&done, err) < 0)
		return -1;
	if (done) {
		cover_root();
		return 0;
	}
	if (merge_directory("/usr", overlays, err) < 0 || merge_directory("/etc", overlays, err) < 0)
		return -1;
	return protect_packages(err);
}
