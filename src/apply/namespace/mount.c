/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: the system calls that mount, old and new. Turns descriptors and flags into a descriptor of
 * the root of the new mount. Does not know where a source comes from or what a target is called.
 */
#include "apply/namespace/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/sys.h"
#include "plan/plan.h"

#define EMPTY_PATH           0x1000u /* AT_EMPTY_PATH, as an unsigned flag */
#define FSCONFIG_SET_STRING_ 1u
#define FSCONFIG_CMD_CREATE_ 6u
#define FSOPEN_CLOEXEC_      1u
#define FSMOUNT_CLOEXEC_     1u
#define FIND_TRIES           4096
#define MAX_TABLE            (64u << 20) /* enough for the kernel's limit of 100,000 mounts */
/* Flags that no kernel knows, including close-on-exec, so that nothing is opened. */
#define ALL_BITS_WITH_CLOEXEC (~0u)

/* The flag bits of a plan are those of mount(2), mount_setattr(2) and statfs(2). */
_Static_assert((int)GRAFT_MOUNT_RDONLY == (int)MS_RDONLY && GRAFT_MOUNT_RDONLY == GRAFT_MOUNT_ATTR_RDONLY, "ro");
_Static_assert((int)GRAFT_MOUNT_NOSUID == (int)MS_NOSUID && GRAFT_MOUNT_NOSUID == GRAFT_MOUNT_ATTR_NOSUID, "nosuid");
_Static_assert((int)GRAFT_MOUNT_NODEV == (int)MS_NODEV && GRAFT_MOUNT_NODEV == GRAFT_MOUNT_ATTR_NODEV, "nodev");
_Static_assert((int)GRAFT_MOUNT_NOEXEC == (int)MS_NOEXEC && GRAFT_MOUNT_NOEXEC == GRAFT_MOUNT_ATTR_NOEXEC, "noexec");
#define KNOWN_FLAGS (GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOEXEC)

/* Makes a call with arguments that every kernel refuses. */
static int probe(enum graft_mount_call call)
{
	const struct graft_mount_attr none = { 0 };

	switch (call) {
	case GRAFT_MOUNT_CALL_OPEN_TREE:
		return graft_open_tree(-1, "", ALL_BITS_WITH_CLOEXEC);
	case GRAFT_MOUNT_CALL_MOVE_MOUNT:
		return graft_move_mount(-1, "", -1, "", ALL_BITS_WITH_CLOEXEC);
	case GRAFT_MOUNT_CALL_MOUNT_SETATTR:
		return graft_mount_setattr(-1, "", ALL_BITS_WITH_CLOEXEC, &none);
	case GRAFT_MOUNT_CALL_FSOPEN:
		return graft_fsopen("", ALL_BITS_WITH_CLOEXEC);
	case GRAFT_MOUNT_CALL_FSCONFIG:
		return graft_fsconfig(-1, ALL_BITS_WITH_CLOEXEC, NULL, NULL, 0);
	case GRAFT_MOUNT_CALL_FSMOUNT:
		return graft_fsmount(-1, ALL_BITS_WITH_CLOEXEC, ALL_BITS_WITH_CLOEXEC);
	case GRAFT_MOUNT_CALL_MAX:
		break;
	}
	return 0;
}

void graft_mounter_probe(struct graft_mounter *mounter, int proc_fd)
{
	*mounter = (struct graft_mounter){
		.proc_fd = proc_fd,
		.seclusion = { .proc_fd = proc_fd, .spared_fd = -1 },
		.table_fd = -1,
	};
	for (int i = 0; i < GRAFT_MOUNT_CALL_MAX; i++) {
		if (probe((enum graft_mount_call)i) >= 0)
			continue; /* cannot happen: all arguments are invalid */
		mounter->missing[i] = errno == ENOSYS || errno == EPERM;
		mounter->refused = mounter->refused || errno == EPERM;
	}
}

void graft_mounter_done(struct graft_mounter *mounter)
{
	if (mounter->table_fd > 0)
		(void)close(mounter->table_fd);
	mounter->table_fd = -1;
	graft_buffer_done(&mounter->table);
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
	if (spot->fd >= 0 && !spot->kept)
		(void)close(spot->fd);
	if (spot->parent_fd >= 0)
		(void)close(spot->parent_fd);
	spot->fd = -1;
	spot->parent_fd = -1;
}

/* AT_RECURSIVE, if the flags of an edit say so. */
static unsigned int recursive(uint32_t flags)
{
	return (flags & GRAFT_MOUNT_RECURSIVE) != 0 ? (unsigned int)AT_RECURSIVE : 0;
}

int graft_mount_clone_path(const char *path, bool nofollow, uint32_t flags)
{
	unsigned int follow = nofollow ? (unsigned int)AT_SYMLINK_NOFOLLOW : 0u;
	int fd = graft_open_tree(AT_FDCWD, path, GRAFT_OPEN_TREE_CLONE | O_CLOEXEC | follow | recursive(flags));

	return fd < 0 ? -errno : fd;
}

int graft_mount_clone_fd(int fd, uint32_t flags)
{
	int clone_fd = graft_open_tree(fd, "", GRAFT_OPEN_TREE_CLONE | O_CLOEXEC | EMPTY_PATH | recursive(flags));

	return clone_fd < 0 ? -errno : clone_fd;
}

/*
 * A name for `fd` that mount(2) and umount(2) accept while the working directory is
 * mounter->proc_fd.
 */
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

/* ---- the mount table ---- */

/* Whether the table may have changed since this function was called last. */
static bool has_table_changed(const struct graft_mounter *mounter)
{
	struct pollfd pollfd = { .fd = mounter->table_fd, .events = POLLPRI };

	return poll(&pollfd, 1, 0) != 0;
}

/* Called before and after a change of ours, which leaves the table valid. */
static void begin_change(struct graft_mounter *mounter)
{
	if (mounter->table_fd >= 0)
		mounter->is_table_old = mounter->is_table_old || has_table_changed(mounter);
}

static void end_change(const struct graft_mounter *mounter)
{
	if (mounter->table_fd >= 0)
		(void)has_table_changed(mounter);
}

static int read_table(struct graft_mounter *mounter)
{
	auto_arena struct graft_arena *arena = graft_arena_new(MAX_TABLE);
	const char *bytes = "";
	size_t length;
	int rc = !arena ? -ENOMEM : lseek(mounter->table_fd, 0, SEEK_SET) < 0 ? -errno : 0;

	if (rc == 0)
		rc = graft_read_fd(mounter->table_fd, MAX_TABLE, arena, &bytes, &length);
	graft_buffer_done(&mounter->table);
	mounter->table.max = 2 * (size_t)MAX_TABLE;
	graft_buffer_char(&mounter->table, '\n');
	graft_buffer_string(&mounter->table, bytes);
	if (rc == 0 && graft_buffer_failed(&mounter->table))
		rc = -ENOMEM;
	mounter->is_table_old = rc < 0;
	return rc;
}

/*
 * Reads the table again only if another process has changed it: it may be long, and nearly all of
 * it the host's. It comes from our own procfs: "/proc" may be the image's.
 */
static int refresh_table(struct graft_mounter *mounter)
{
	if (mounter->table_fd < 0) {
		mounter->table_fd = openat(mounter->proc_fd, "../mountinfo", O_RDONLY | O_CLOEXEC);
		mounter->is_table_old = true;
	}
	if (mounter->table_fd < 0)
		return -errno;
	begin_change(mounter);
	return mounter->is_table_old ? read_table(mounter) : 0;
}

/* The beginning of a mount's line. */
struct line {
	char text[32];
};

static struct line line_of(uint64_t id)
{
	struct line line;

	(void)snprintf(line.text, sizeof(line.text), "\n%" PRIu64 " ", id);
	return line;
}

/* Adds a mount of ours. */
static void note_mount(struct graft_mounter *mounter, int mount_fd)
{
	graft_buffer_string(&mounter->table, line_of(graft_mount_id(mounter->proc_fd, "../fdinfo", mount_fd)).text);
}

/* ---- flags ---- */

/*
 * QUIRK: a remount replaces the flags of a mount, and locked ones must be given again. The atime
 * flags are kept if none is given.
 */
static int settle_by_remount(const struct graft_mounter *mounter, int mount_fd, uint32_t flags)
{
	struct statfs fs;
	int rc;

	if (fstatfs(mount_fd, &fs) < 0)
		return -errno;
	flags |= (uint32_t)fs.f_flags;
	rc = old_mount(mounter, -1, mount_fd, NULL, MS_BIND | MS_REMOUNT | (flags & KNOWN_FLAGS), NULL);
	if (rc < 0)
		return rc;
	return old_mount(mounter, -1, mount_fd, NULL, MS_PRIVATE | MS_REC, NULL);
}

int graft_mount_settle(struct graft_mounter *mounter, int mount_fd, uint32_t flags, bool attached)
{
	struct graft_mount_attr attr = { .attr_set = flags & KNOWN_FLAGS,
					 .propagation = attached ? MS_PRIVATE : MS_UNBINDABLE };
	bool missing = mounter->missing[GRAFT_MOUNT_CALL_MOUNT_SETATTR];
	int rc = 0;

	begin_change(mounter);
	if (!missing && graft_mount_setattr(mount_fd, "", EMPTY_PATH | recursive(flags), &attr) < 0)
		rc = -errno;
	if (missing && attached)
		rc = settle_by_remount(mounter, mount_fd, flags);
	end_change(mounter);
	return rc;
}

static int move(int mount_fd, const struct graft_spot *spot)
{
	return graft_move_mount(mount_fd, "", spot->fd, "",
				GRAFT_MOVE_MOUNT_F_EMPTY_PATH | GRAFT_MOVE_MOUNT_T_EMPTY_PATH) < 0
		   ? -errno
		   : 0;
}

/*
 * The mount below is spared: its peers get our mount, which is what a caller that works in its own
 * mount namespace expects.
 */
static int move_openly(int mount_fd, const struct graft_spot *spot)
{
	struct graft_mount_attr attr = { .propagation = MS_PRIVATE };

	return graft_mount_setattr(mount_fd, "", EMPTY_PATH | (unsigned int)AT_RECURSIVE, &attr) < 0
		   ? -errno
		   : move(mount_fd, spot);
}

int graft_mount_attach(struct graft_mounter *mounter, int mount_fd, const struct graft_spot *spot)
{
	int rc;

	/* BASELINE 5.12: a detached mount cannot be made unbindable. */
	if (mounter->missing[GRAFT_MOUNT_CALL_MOUNT_SETATTR]) {
		rc = graft_seclude(&mounter->seclusion, spot->fd);
		return rc < 0 ? rc : move(mount_fd, spot);
	}
	rc = move(mount_fd, spot);
	if (rc != -EINVAL)
		return rc;
	rc = graft_seclude(&mounter->seclusion, spot->fd);
	if (rc < 0)
		return rc;
	if (rc == GRAFT_SECLUDE_PLAIN)
		return -EINVAL; /* for another reason */
	return rc == GRAFT_SECLUDE_SPARED ? move_openly(mount_fd, spot) : move(mount_fd, spot);
}

/* What mount(2) made, and what distinguishes it from everything else. */
struct search {
	struct graft_mounter *mounter;
	const struct stat *want; /* a bind shows this object; NULL for a tmpfs, */
	struct stat below;       /* which has another device number than what it is mounted on */
};

/* Whether `fd` is on a mount that did not exist before. False if that cannot be determined. */
static bool is_on_new_mount(const struct search *search, int fd)
{
	uint64_t id = graft_mount_id(search->mounter->proc_fd, "../fdinfo", fd);

	return id > 0 && !strstr(graft_buffer_text(&search->mounter->table), line_of(id).text);
}

static bool is_wanted_mount(const struct search *search, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (search->want && (st.st_dev != search->want->st_dev || st.st_ino != search->want->st_ino))
		return false;
	if (!search->want && (st.st_dev == search->below.st_dev || !S_ISDIR(st.st_mode)))
		return false;
	return is_on_new_mount(search, fd);
}

/*
 * BASELINE 5.2: mount(2) returns no descriptor of what it made, so the mount is looked up by its
 * name in its parent directory. While another process renames things it may not be there at once,
 * so the lookup is repeated for some milliseconds. A mount that stays hidden is a failure.
 *
 * SECURITY: the name may be another mount of the same source, which must neither get the flags
 * meant for ours nor be undone. So the mount must not be in the table from before.
 */
static int find_new_mount(const struct search *search, const struct graft_spot *spot, int *ret_mount_fd)
{
	for (int i = 0; i < FIND_TRIES; i++) {
		auto_close int fd = openat(spot->parent_fd, spot->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0 || !is_wanted_mount(search, fd))
			continue;
		*ret_mount_fd = TAKE_FD(fd);
		return 0;
	}
	return -ESTALE;
}

/*
 * Only for a mount that could not be found again. umount(2), unlike open(2), follows a mount point
 * to what is mounted on it, so the descriptor of the mount point works, whatever its name is by
 * now.
 */
static void undo_by_spot(const struct graft_mounter *mounter, const struct graft_spot *spot)
{
	struct fd_name name = name_of(spot->fd);

	if (fchdir(mounter->proc_fd) == 0)
		(void)umount2(name.text, MNT_DETACH);
}

/* Calls mount(2) on the spot and opens the result. On failure nothing is mounted. */
static int mount_and_find(struct search *search, int source_fd, const struct graft_spot *spot, uint32_t flags,
			  const char *data, int *ret_mount_fd)
{
	struct graft_mounter *mounter = search->mounter;
	const char *type = source_fd < 0 ? "tmpfs" : NULL;
	int rc = graft_seclude(&mounter->seclusion, spot->fd);

	if (rc >= 0)
		rc = refresh_table(mounter);
	if (rc >= 0)
		rc = old_mount(mounter, source_fd, spot->fd, type, flags, data);
	if (rc < 0)
		return rc;
	end_change(mounter);
	rc = find_new_mount(search, spot, ret_mount_fd);
	if (rc < 0)
		undo_by_spot(mounter, spot);
	else
		note_mount(mounter, *ret_mount_fd);
	return rc;
}

int graft_mount_bind(struct graft_mounter *mounter, int source_fd, const struct graft_spot *spot, uint32_t flags,
		     int *ret_mount_fd)
{
	uint32_t all = (flags & GRAFT_MOUNT_RECURSIVE) != 0 ? (uint32_t)MS_REC : 0u;
	struct stat source;
	struct search search = { .mounter = mounter, .want = &source };

	if (fstat(source_fd, &source) < 0)
		return -errno;
	return mount_and_find(&search, source_fd, spot, MS_BIND | all, NULL, ret_mount_fd);
}

int graft_mount_new_tmpfs(struct graft_mounter *mounter, mode_t mode, uint32_t flags)
{
	auto_close int fs_fd = graft_fsopen("tmpfs", FSOPEN_CLOEXEC_);
	auto_close int fd = -1;
	char text[16];
	int rc;

	(void)snprintf(text, sizeof(text), "%04o", (unsigned int)mode & 07777u);
	if (fs_fd < 0 || graft_fsconfig(fs_fd, FSCONFIG_SET_STRING_, "source", "tmpfs", 0) < 0 ||
	    graft_fsconfig(fs_fd, FSCONFIG_SET_STRING_, "mode", text, 0) < 0 ||
	    graft_fsconfig(fs_fd, FSCONFIG_CMD_CREATE_, NULL, NULL, 0) < 0)
		return -errno;
	fd = graft_fsmount(fs_fd, FSMOUNT_CLOEXEC_, flags & KNOWN_FLAGS);
	if (fd < 0)
		return -errno;
	rc = graft_mount_settle(mounter, fd, 0, false);
	return rc < 0 ? rc : TAKE_FD(fd);
}

int graft_mount_tmpfs(struct graft_mounter *mounter, const struct graft_spot *spot, mode_t mode, uint32_t flags,
		      int *ret_mount_fd)
{
	struct search search = { .mounter = mounter };
	char data[32];

	(void)snprintf(data, sizeof(data), "mode=%04o", (unsigned int)mode & 07777u);
	if (fstat(spot->fd, &search.below) < 0)
		return -errno;
	return mount_and_find(&search, -1, spot, flags & KNOWN_FLAGS, data, ret_mount_fd);
}
