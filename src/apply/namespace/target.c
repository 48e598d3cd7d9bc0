/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: opens a container's root and namespaces from a pid and a path of the caller, and
 * determines its owner. Changes nothing.
 *
 * Everything is looked up below one descriptor of /proc/PID, which the kernel ties to the process
 * and not to the number: if the process exits and its pid is reused, lookups fail (ESRCH) instead
 * of leading into another container.
 */
#include "apply/namespace/target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/read.h"
#include "base/sys.h"
#include "formats/procfs.h"

#define MOUNTINFO_MAX ((size_t)4 << 20)

/*
 * Inode of the initial user namespace (include/linux/proc_ns.h, part of the kernel's ABI since
 * 3.8).
 */
#define INITIAL_USER_NS UINT64_C(0xEFFFFFFD)

/* Whether CAP_SYS_ADMIN is permitted in our user namespace; the steps make it effective in turn. */
static bool may_administrate(void)
{
	struct graft_caps_sets sets;

	return graft_caps_read(&sets) == 0 && (sets.permitted >> CAP_SYS_ADMIN & 1u) != 0;
}

static int fail_process(struct graft_error *err, int sys, pid_t pid, const char *what)
{
	/* ESRCH: the process is gone; to the user, its file does not exist. */
	return graft_fail_errno(err, sys == ESRCH ? ENOENT : sys, "open failed: /proc/%ld%s", (long)pid, what);
}

/*
 * Opens a namespace of the process unless it is our own (*ret_fd stays -1 then). *ret_inode
 * identifies it: the initial namespace of each kind has a fixed inode.
 */
static int open_foreign(int process_fd, const char *theirs, const char *ours, uint64_t *ret_inode, int *ret_fd)
{
	auto_close int fd = openat(process_fd, theirs, O_RDONLY | O_CLOEXEC);
	struct stat their, our;

	if (fd < 0 || fstat(fd, &their) < 0 || stat(ours, &our) < 0)
		return -errno;
	*ret_inode = their.st_ino;
	if (their.st_dev != our.st_dev || their.st_ino != our.st_ino)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

static int open_namespaces(struct graft_target *target, struct graft_error *err)
{
	auto_close int user_fd = -1;
	uint64_t inode = 0;
	int rc = open_foreign(target->process_fd, "ns/mnt", "/proc/self/ns/mnt", &inode, &target->mount_ns_fd);

	if (rc < 0)
		return fail_process(err, -rc, target->pid, "/ns/mnt");
	rc = open_foreign(target->process_fd, "ns/user", "/proc/self/ns/user", &inode, &user_fd);
	if (rc == -ENOENT)
		return 0; /* a kernel without user namespaces */
	if (rc < 0)
		return fail_process(err, -rc, target->pid, "/ns/user");
	target->user_namespace = inode != INITIAL_USER_NS;
	if (user_fd >= 0 && !may_administrate())
		target->user_ns_fd = TAKE_FD(user_fd);
	return 0;
}

/*
 * SECURITY: a ROOTFS that resolves to / through a link or ".." is not a container's root: before
 * the runtime changes the root, it is the host's. Another mount of the same directory is allowed.
 */
static int refuse_whole(const struct graft_target *target, int whole_fd, const char *rootfs, struct graft_error *err)
{
	const struct graft_image_root *root = &target->root;
	struct stat st, whole;

	if (fstat(root->fd, &st) < 0 || fstat(whole_fd, &whole) < 0)
		return graft_fail_errno(err, errno, "path error: %s", rootfs);
	if (st.st_dev != whole.st_dev || st.st_ino != whole.st_ino ||
	    root->mount_id != graft_image_root_mount_id(root, whole_fd))
		return 0;
	return graft_fail(err, GRAFT_UNSAFE, 0, "path error: %s leads to /", rootfs);
}

/* Takes the descriptor. */
static void take_target_root(struct graft_target *target, int take_fd)
{
	graft_image_root_take(&target->root, take_fd, target->root.budget);
	target->root.mount_ns_fd = target->mount_ns_fd;
}

/*
 * Opens the root as the process sees it. The link is that of our own procfs and the only magic link
 * that is followed.
 */
static int open_supervised_root(struct graft_target *target, struct graft_error *err)
{
	auto_image_root struct graft_image_root outer = GRAFT_IMAGE_ROOT_INIT;
	int fd = openat(target->process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return fail_process(err, errno, target->pid, "/root");
	graft_image_root_take(&outer, fd, target->root.budget);
	fd = graft_image_root_look(&outer, target->rootfs, O_DIRECTORY);
	if (fd < 0)
		return graft_fail_errno(err, -fd, "path error: /proc/%ld/root%s", (long)target->pid, target->rootfs);
	take_target_root(target, fd);
	return refuse_whole(target, outer.fd, target->rootfs, err);
}

static int open_created_root(struct graft_target *target, struct graft_error *err)
{
	int fd = openat(target->process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return fail_process(err, errno, target->pid, "/root");
	take_target_root(target, fd);
	return 0;
}

static int fail_stranger(const struct graft_target *target, const char *what, struct graft_error *err)
{
	return graft_fail(
	    err, GRAFT_PROGRAM, 0,
	    "the low-level runtime gave the ID of process %ld, which is not in the container: it has %s%s",
	    (long)target->pid, what ? "another " : "no mount namespace of its own", what ? what : "");
}

/*
 * SECURITY: with a process of another container, or one that has changed neither its root nor its
 * namespace, we would modify another container or the host.
 */
static int refuse_stranger(const struct graft_target *target, dev_t dev, ino_t inode, struct graft_error *err)
{
	auto_close int whole_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (whole_fd < 0 || fstat(target->root.fd, &st) < 0)
		return graft_fail_errno(err, errno, "path error: /");
	if (target->user_namespace)
		return fail_stranger(target, "user namespace", err);
	if (target->mount_ns_fd < 0)
		return fail_stranger(target, NULL, err);
	if (st.st_dev != dev || st.st_ino != inode)
		return fail_stranger(target, "root", err);
	return refuse_whole(target, whole_fd, "the root of the container's process", err);
}

static int open_process(struct graft_target *target, struct graft_error *err)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%ld", (long)target->pid);
	target->process_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (target->process_fd < 0 || fstat(target->process_fd, &st) < 0)
		return fail_process(err, errno, target->pid, "");
	target->uid = st.st_uid;
	target->gid = st.st_gid;
	return open_namespaces(target, err);
}

static int open_supervised(struct graft_target *target, struct graft_error *err)
{
	return open_process(target, err) < 0 ? -1 : open_supervised_root(target, err);
}

/*
 * What is created belongs to root, as if a hook created it: the process already has the ids of the
 * container's user, who must not own it.
 */
static int open_created(struct graft_target *target, struct graft_error *err)
{
	if (open_process(target, err) < 0)
		return -1;
	target->uid = geteuid();
	target->gid = getegid();
	return open_created_root(target, err);
}

static int open_running(struct graft_target *target, struct graft_error *err)
{
	return open_process(target, err) < 0 ? -1 : open_created_root(target, err);
}

bool graft_in_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != INITIAL_USER_NS;
}

/* The caller is in the container's namespaces already and owns what it creates. */
static int open_standalone(struct graft_target *target, struct graft_error *err)
{
	auto_close int whole_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = open(target->rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return graft_fail_errno(err, errno, "path error: %s", target->rootfs);
	take_target_root(target, fd);
	if (whole_fd < 0)
		return graft_fail_errno(err, errno, "path error: /");
	if (refuse_whole(target, whole_fd, target->rootfs, err) < 0)
		return -1;
	target->uid = geteuid();
	target->gid = getegid();
	target->user_namespace = graft_in_user_namespace();
	return 0;
}

/* Opens a target with `open_it` and returns it completely or not at all. */
static int open_whole(struct graft_target *target, int (*open_it)(struct graft_target *, struct graft_error *),
		      struct graft_budget *budget, const struct graft_log *log, struct graft_target *ret_target,
		      struct graft_error *err)
{
	graft_info(log, "setting pid to %ld", (long)target->pid);
	graft_info(log, "setting rootfs to %s", target->rootfs);
	target->root.budget = budget;
	if (!budget) {
		target->root.budget = target->own_budget = graft_budget_new(GRAFT_BUDGET_CPU_MS);
		if (!target->own_budget)
			return graft_fail_memory(err);
	}
	if (open_it(target, err) < 0)
		return -1;
	graft_info(log, "setting owner to %u:%u", target->uid, target->gid);
	graft_info(log, "setting mount namespace to %s%ld%s", "/proc/", (long)target->pid, "/ns/mnt");
	*ret_target = *target;
	*target = (struct graft_target)GRAFT_TARGET_INIT;
	return 0;
}

int graft_target_open(pid_t pid, bool supervised, const char *rootfs, struct graft_budget *budget,
		      const struct graft_log *log, struct graft_target *ret_target, struct graft_error *err)
{
	auto_target struct graft_target target = GRAFT_TARGET_INIT;

	if (pid <= 0 || !rootfs || rootfs[0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0, "invalid argument");
	target.pid = pid;
	target.supervised = supervised;
	target.rootfs = rootfs;
	return open_whole(&target, supervised ? open_supervised : open_standalone, budget, log, ret_target, err);
}

int graft_target_open_running(pid_t pid, const struct graft_log *log, struct graft_target *ret_target,
			      struct graft_error *err)
{
	auto_target struct graft_target target = GRAFT_TARGET_INIT;

	target.pid = pid;
	target.supervised = true;
	target.rootfs = "/";
	return open_whole(&target, open_running, NULL, log, ret_target, err);
}

int graft_target_open_created(pid_t pid, dev_t dev, ino_t inode, struct graft_budget *budget,
			      const struct graft_log *log, struct graft_target *ret_target, struct graft_error *err)
{
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	struct graft_target opened = GRAFT_TARGET_INIT;

	if (pid <= 0)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid argument");
	target.pid = pid;
	target.supervised = true;
	target.rootfs = "";
	if (open_whole(&target, open_created, budget, log, &opened, err) < 0 ||
	    refuse_stranger(&opened, dev, inode, err) < 0) {
		graft_target_close(&opened);
		return -1;
	}
	*ret_target = opened;
	return 0;
}

/* ---- SECURITY: a volume over the root ---- */

static const struct graft_mountinfo *find_mount_row(const struct graft_mountinfo *mounts, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if ((uint64_t)mounts[i].mount_id == id)
			return &mounts[i];
	return NULL;
}

/*
 * Whether the root's mount covers the root of another one. A low-level runtime mounts the root on
 * itself first, so the same directory may be there twice. True if that cannot be determined.
 */
static bool covers_another(const struct graft_target *target)
{
	auto_close int fd = target->process_fd >= 0
				? openat(target->process_fd, "mountinfo", O_RDONLY | O_CLOEXEC)
				: openat(target->root.proc_fd, "self/mountinfo", O_RDONLY | O_CLOEXEC);
	auto_arena struct graft_arena *arena = fd < 0 ? NULL : graft_arena_new(4 * MOUNTINFO_MAX);
	const struct graft_mountinfo *top, *below;
	struct graft_mountinfo *mounts;
	const char *text;
	size_t length, n;

	if (!arena || graft_read_fd(fd, MOUNTINFO_MAX, arena, &text, &length) < 0 ||
	    graft_procfs_mountinfo(text, length, arena, &mounts, &n) < 0)
		return true;
	top = below = find_mount_row(mounts, n, target->root.mount_id);
	for (size_t i = 0; below && i < n; i++) {
		below = find_mount_row(mounts, n, (uint64_t)below->parent_id);
		if (below && strcmp(top->mount_point, below->mount_point) != 0)
			return false;
		if (below &&
		    (top->major != below->major || top->minor != below->minor || strcmp(top->root, below->root) != 0))
			return true;
	}
	return true;
}

int graft_target_refuse_volume(const struct graft_target *target, const char *const *sources, size_t n_sources,
			       struct graft_error *err)
{
	struct graft_statx st;
	struct stat root;

	if (fstat(target->root.fd, &root) < 0)
		return graft_fail_errno(err, errno, "path error: %s", target->rootfs);
	for (size_t i = 0; i < n_sources; i++)
		if (graft_statx(AT_FDCWD, sources[i], GRAFT_STATX_DONT_SYNC, GRAFT_STATX_INO, &st) == 0 &&
		    makedev(st.dev_major, st.dev_minor) == root.st_dev && st.ino == root.st_ino &&
		    covers_another(target))
			return graft_fail(err, GRAFT_UNSAFE, 0,
					  "a link in the image leads the mount of %s over the whole root", sources[i]);
	return 0;
}

/* ---- SECURITY: a tmpfs of the host, or a directory of one, may be a volume at /dev ---- */

/*
 * Returns whether /dev is the tmpfs of config.json. SECURITY: a link of the image may have led a
 * volume over it. Then the mount is not on the root itself, and /dev shows the volume's file
 * system.
 */
static bool is_of_config(const struct graft_oci_dev *config, int dev_fd, dev_t dev, const struct graft_image_root *root)
{
	struct stat st;
	dev_t root_dev;

	if (!config->tmpfs || fstat(root->fd, &st) < 0)
		return false;
	if (graft_is_mounted_on(dev_fd, root->fd))
		return true;
	/* A volume over the root may have brought a file system of its own for /dev. */
	root_dev = st.st_dev;
	for (size_t i = 0; i < config->n_sources; i++)
		if (stat(config->sources[i], &st) < 0 || st.st_dev == dev || st.st_dev == root_dev)
			return false;
	return true;
}

/*
 * Searches our table of mounts, which takes longer to read the more the host has mounted. We may
 * change a whole tmpfs that is mounted nowhere else in our namespace (if the container's mounts are
 * in it), or not at all (otherwise). Parts of it may cover files (/dev/null over /proc/kcore).
 */
static bool is_mounted_once(const struct graft_mountinfo *mounts, size_t n, uint64_t id, dev_t dev)
{
	bool whole = false, in_part = false, inside = false, elsewhere = false;

	for (size_t i = 0; i < n; i++) {
		const struct graft_mountinfo *mount = &mounts[i];
		bool is_whole = strcmp(mount->root, "/") == 0;

		if (makedev(mount->major, mount->minor) != dev)
			continue;
		if ((uint64_t)mount->mount_id == id) {
			inside = true;
			whole = is_whole;
		} else {
			elsewhere = elsewhere || is_whole;
			in_part = in_part || !is_whole;
		}
	}
	return inside ? whole && !elsewhere : !elsewhere && !in_part;
}

static bool is_once_in_table(const struct graft_image_root *root, uint64_t id, dev_t dev)
{
	auto_close int fd = openat(root->proc_fd, "self/mountinfo", O_RDONLY | O_CLOEXEC);
	auto_arena struct graft_arena *arena = fd < 0 ? NULL : graft_arena_new(4 * MOUNTINFO_MAX);
	struct graft_mountinfo *mounts;
	const char *text;
	size_t length, n;

	return arena && graft_read_fd(fd, MOUNTINFO_MAX, arena, &text, &length) == 0 &&
	       graft_procfs_mountinfo(text, length, arena, &mounts, &n) == 0 && is_mounted_once(mounts, n, id, dev);
}

void graft_target_find_dev(struct graft_image_root *root, const struct graft_oci_dev *config)
{
	auto_close int fd = openat(root->fd, "dev", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t id = fd < 0 ? 0 : graft_image_root_mount_id(root, fd);
	struct statfs fs;
	struct stat st;

	root->own_dev = 0;
	if (id != 0 && id != root->mount_id && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
	    fstat(fd, &st) == 0 && (is_of_config(config, fd, st.st_dev, root) || is_once_in_table(root, id, st.st_dev)))
		root->own_dev = st.st_dev;
}

void graft_target_close(struct graft_target *target)
{
	graft_image_root_close(&target->root);
	target->own_budget = graft_budget_free(target->own_budget);
	if (target->process_fd >= 0)
		(void)close(target->process_fd);
	if (target->mount_ns_fd >= 0)
		(void)close(target->mount_ns_fd);
	if (target->user_ns_fd >= 0)
		(void)close(target->user_ns_fd);
	*target = (struct graft_target)GRAFT_TARGET_INIT;
}
