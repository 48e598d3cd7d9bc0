/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: the calls that mount, in their two forms. Input: descriptors and flags; output: a descriptor of the root of the new mount. Refuses
 * to know where a source comes from or what a place is called.
 */
#include "apply/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "plan/plan.h"

#define EMPTY_PATH           0x1000u /* AT_EMPTY_PATH, as an unsigned flag */
#define FSCONFIG_SET_STRING_ 1u
#define FSCONFIG_CMD_CREATE_ 6u
#define FSOPEN_CLOEXEC_      1u
#define FSMOUNT_CLOEXEC_     1u
#define FIND_TRIES           4096
/* Flags that no kernel knows, close-on-exec among them: nothing is opened. */
#define ALL_BITS_WITH_CLOEXEC (~0u)

const char *const graft_mount_call_names[GRAFT_MOUNT_CALL_MAX] = {
#define X(name, word, without) [GRAFT_MOUNT_CALL_##name] = word,
	GRAFT_MOUNT_CALL_LIST(X)
#undef X
};

/* The bits of a plan's flags are those of mount(2), of mount_setattr(2) and of statfs(2). */
_Static_assert((int)GRAFT_MOUNT_RDONLY == (int)MS_RDONLY && GRAFT_MOUNT_RDONLY == GRAFT_MOUNT_ATTR_RDONLY, "ro");
_Static_assert((int)GRAFT_MOUNT_NOSUID == (int)MS_NOSUID && GRAFT_MOUNT_NOSUID == GRAFT_MOUNT_ATTR_NOSUID, "nosuid");
_Static_assert((int)GRAFT_MOUNT_NODEV == (int)MS_NODEV && GRAFT_MOUNT_NODEV == GRAFT_MOUNT_ATTR_NODEV, "nodev");
_Static_assert((int)GRAFT_MOUNT_NOEXEC == (int)MS_NOEXEC && GRAFT_MOUNT_NOEXEC == GRAFT_MOUNT_ATTR_NOEXEC, "noexec");
#define KNOWN_FLAGS (GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOEXEC)

static int probe_open_tree(void)
{
	return graft_open_tree(-1, "", ALL_BITS_WITH_CLOEXEC);
}

static int probe_move_mount(void)
{
	return graft_move_mount(-1, "", -1, "", ALL_BITS_WITH_CLOEXEC);
}

static int probe_mount_setattr(void)
{
	struct graft_mount_attr none = { 0 };

	return graft_mount_setattr(-1, "", ALL_BITS_WITH_CLOEXEC, &none);
}

static int probe_fsopen(void)
{
	return graft_fsopen("", ALL_BITS_WITH_CLOEXEC);
}

static int probe_fsconfig(void)
{
	return graft_fsconfig(-1, ALL_BITS_WITH_CLOEXEC, NULL, NULL, 0);
}

static int probe_fsmount(void)
{
	return graft_fsmount(-1, ALL_BITS_WITH_CLOEXEC, ALL_BITS_WITH_CLOEXEC);
}

static int (*const probes[GRAFT_MOUNT_CALL_MAX])(void) = {
	[GRAFT_MOUNT_CALL_OPEN_TREE] = probe_open_tree,         [GRAFT_MOUNT_CALL_MOVE_MOUNT] = probe_move_mount,
	[GRAFT_MOUNT_CALL_MOUNT_SETATTR] = probe_mount_setattr, [GRAFT_MOUNT_CALL_FSOPEN] = probe_fsopen,
	[GRAFT_MOUNT_CALL_FSCONFIG] = probe_fsconfig,           [GRAFT_MOUNT_CALL_FSMOUNT] = probe_fsmount,
};

void graft_mounter_probe(struct graft_mounter *mounter, int proc_fd)
{
	*mounter = (struct graft_mounter){ .proc_fd = proc_fd };
	for (int i = 0; i < GRAFT_MOUNT_CALL_MAX; i++) {
		if (probes[i]() >= 0)
			continue; /* cannot be: all arguments are wrong */
		mounter->missing[i] = errno == ENOSYS || errno == EPERM;
		mounter->refused = mounter->refused || errno == EPERM;
	}
}

bool graft_mounter_detaches(const struct graft_mounter *mounter)
{
	return !mounter->missing[GRAFT_MOUNT_CALL_OPEN_TREE] && !mounter->missing[GRAFT_MOUNT_CALL_MOVE_MOUNT];
}

bool graft_mounter_makes_tmpfs(const struct graft_mounter *mounter)
{
	return !mounter->missing[GRAFT_MOUNT_CALL_FSOPEN] && !mounter->missing[GRAFT_MOUNT_CALL_FSCONFIG] &&
	       !mounter->missing[GRAFT_MOUNT_CALL_FSMOUNT] && !mounter->missing[GRAFT_MOUNT_CALL_MOVE_MOUNT];
}

void graft_spot_done(struct graft_spot *spot)
{
	if (spot->fd >= 0)
		(void)close(spot->fd);
	if (spot->parent_fd >= 0)
		(void)close(spot->parent_fd);
	spot->fd = -1;
	spot->parent_fd = -1;
}

int graft_mount_clone_path(const char *path, bool nofollow)
{
	unsigned int flags = GRAFT_OPEN_TREE_CLONE | O_CLOEXEC | (nofollow ? (unsigned int)AT_SYMLINK_NOFOLLOW : 0u);
	int fd = graft_open_tree(AT_FDCWD, path, flags);

	return fd < 0 ? -errno : fd;
}

int graft_mount_clone_fd(int fd)
{
	int clone_fd = graft_open_tree(fd, "", GRAFT_OPEN_TREE_CLONE | O_CLOEXEC | EMPTY_PATH);

	return clone_fd < 0 ? -errno : clone_fd;
}

/* A name of `fd` that mount(2) and umount(2) take, while the working directory is mounter->proc_fd. */
struct fd_name {
	char text[16];
};

static struct fd_name name_of(int fd)
{
	struct fd_name name;

	(void)snprintf(name.text, sizeof(name.text), "%d", fd);
	return name;
}

/* mount(2) with descriptors; -1 = none. */
static int old_mount(const struct graft_mounter *mounter, int source_fd, int target_fd, const char *type,
		     unsigned long flags, const char *data)
{
	struct fd_name source = name_of(source_fd), target = name_of(target_fd);

	if (fchdir(mounter->proc_fd) < 0)
		return -errno;
	return mount(source_fd < 0 ? "tmpfs" : source.text, target.text, type, flags, data) < 0 ? -errno : 0;
}

/* QUIRK: a remount replaces the flags of a mount, and locked ones must be named again. Times (atime) are kept when none is named. */
static int settle_by_remount(const struct graft_mounter *mounter, int mount_fd, uint32_t flags)
{
	struct statfs fs;
	int rc;

	if (fstatfs(mount_fd, &fs) < 0)
		return -errno;
	flags |= (uint32_t)fs.f_flags & KNOWN_FLAGS;
	rc = old_mount(mounter, -1, mount_fd, NULL, MS_BIND | MS_REMOUNT | flags, NULL);
	if (rc < 0)
		return rc;
	return old_mount(mounter, -1, mount_fd, NULL, MS_PRIVATE, NULL);
}

int graft_mount_settle(const struct graft_mounter *mounter, int mount_fd, uint32_t flags, bool attached, bool *ret_done)
{
	struct graft_mount_attr attr = { .attr_set = flags & KNOWN_FLAGS, .propagation = MS_PRIVATE };
	bool missing = mounter->missing[GRAFT_MOUNT_CALL_MOUNT_SETATTR];
	int rc = 0;

	if (!missing && graft_mount_setattr(mount_fd, "", EMPTY_PATH, &attr) < 0)
		return -errno;
	if (missing && attached)
		rc = settle_by_remount(mounter, mount_fd, flags & KNOWN_FLAGS);
	*ret_done = rc == 0 && (!missing || attached);
	return rc;
}

int graft_mount_attach(int mount_fd, const struct graft_spot *spot)
{
	return graft_move_mount(mount_fd, "", spot->fd, "",
				GRAFT_MOVE_MOUNT_F_EMPTY_PATH | GRAFT_MOVE_MOUNT_T_EMPTY_PATH) < 0
		   ? -errno
		   : 0;
}

static bool same_object(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * BASELINE 5.2: mount(2) gives no descriptor of what it made. It is found by its name in its parent directory, and must be what was mounted (the
 * object `want`, or for a tmpfs anything but the object `not`). While somebody changes names it is not always there: look again, for
 * some milliseconds. A mount that stays hidden is a failure.
 */
static int find_mount(const struct graft_spot *spot, const struct stat *want, const struct stat * not,
		      int *ret_mount_fd)
{
	for (int i = 0; i < FIND_TRIES; i++) {
		auto_close int fd = openat(spot->parent_fd, spot->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			continue;
		/* The root of an empty file system: a device number of its own, and two links. */
		if (want ? !same_object(&st, want)
			 : st.st_dev == not ->st_dev || !S_ISDIR(st.st_mode) || st.st_nlink != 2)
			continue;
		*ret_mount_fd = TAKE_FD(fd);
		return 0;
	}
	return -ESTALE;
}

/*
 * Only for a mount that could not be found again. umount(2), unlike open(2), goes from what the mount lies on to the mount, so its mount point's
 * descriptor serves, whatever its name is by now.
 */
static void undo_by_spot(const struct graft_mounter *mounter, const struct graft_spot *spot)
{
	struct fd_name name = name_of(spot->fd);

	if (fchdir(mounter->proc_fd) == 0)
		(void)umount2(name.text, MNT_DETACH);
}

int graft_mount_bind(const struct graft_mounter *mounter, int source_fd, const struct graft_spot *spot,
		     int *ret_mount_fd)
{
	struct stat st;
	int rc;

	if (fstat(source_fd, &st) < 0)
		return -errno;
	rc = old_mount(mounter, source_fd, spot->fd, NULL, MS_BIND, NULL);
	if (rc < 0)
		return rc;
	rc = find_mount(spot, &st, NULL, ret_mount_fd);
	if (rc < 0)
		undo_by_spot(mounter, spot);
	return rc;
}

int graft_mount_new_tmpfs(mode_t mode, uint32_t flags)
{
	auto_close int fs_fd = graft_fsopen("tmpfs", FSOPEN_CLOEXEC_);
	char text[16];
	int fd;

	(void)snprintf(text, sizeof(text), "%04o", (unsigned int)mode & 07777u);
	if (fs_fd < 0 || graft_fsconfig(fs_fd, FSCONFIG_SET_STRING_, "source", "tmpfs", 0) < 0 ||
	    graft_fsconfig(fs_fd, FSCONFIG_SET_STRING_, "mode", text, 0) < 0 ||
	    graft_fsconfig(fs_fd, FSCONFIG_CMD_CREATE_, NULL, NULL, 0) < 0)
		return -errno;
	fd = graft_fsmount(fs_fd, FSMOUNT_CLOEXEC_, flags & KNOWN_FLAGS);
	return fd < 0 ? -errno : fd;
}

int graft_mount_tmpfs(const struct graft_mounter *mounter, const struct graft_spot *spot, mode_t mode, uint32_t flags,
		      int *ret_mount_fd)
{
	struct stat below;
	char data[32];
	int rc;

	(void)snprintf(data, sizeof(data), "mode=%04o", (unsigned int)mode & 07777u);
	if (fstat(spot->fd, &below) < 0)
		return -errno;
	rc = old_mount(mounter, -1, spot->fd, "tmpfs", flags & KNOWN_FLAGS, data);
	if (rc < 0)
		return rc;
	rc = find_mount(spot, NULL, &below, ret_mount_fd);
	if (rc < 0)
		undo_by_spot(mounter, spot);
	return rc;
}
