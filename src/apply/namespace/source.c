/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: opens and verifies the host objects of edits for mounting. Never looks at the container,
 * except for the same host object seen from its namespace.
 */
#include "apply/namespace/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

void graft_source_close(struct graft_source *source)
{
	if (source->fd >= 0)
		(void)close(source->fd);
	*source = (struct graft_source)GRAFT_SOURCE_INIT;
}

/*
 * If a library or program is a link, it was replaced since planning; directories and sockets may be
 * reached through links.
 */
static bool refuses_link(const struct graft_edit *edit)
{
	return edit->kind != GRAFT_EDIT_DEVICE && edit->type == GRAFT_SOURCE_FILE;
}

static mode_t wanted_type(const struct graft_edit *edit)
{
	if (edit->kind == GRAFT_EDIT_DEVICE)
		return S_IFCHR;
	switch (edit->type) {
	case GRAFT_SOURCE_FILE:
		return S_IFREG;
	case GRAFT_SOURCE_DIRECTORY:
		return S_IFDIR;
	case GRAFT_SOURCE_SOCKET:
		return S_IFSOCK;
	}
	return S_IFREG;
}

/* Texts of SPEC libnvidia-container 9.4. */
static int verify(const struct graft_edit *edit, const struct stat *st, struct graft_error *err)
{
	bool right = (st->st_mode & S_IFMT) == wanted_type(edit);

	if (edit->kind == GRAFT_EDIT_DEVICE) {
		if (right && st->st_rdev == makedev(edit->major, edit->minor))
			return 0;
		return graft_fail(err, GRAFT_UNSAFE, 0, "invalid device node: %s", edit->source);
	}
	if (right)
		return 0;
	return graft_fail(err, GRAFT_UNSAFE, 0, "unexpected source file mode %o for %s", st->st_mode, edit->source);
}

/* Returns a descriptor or -errno. */
static int open_or_clone(const struct graft_edit *edit, bool *late, bool *ret_detached)
{
	bool nofollow = refuses_link(edit);
	int fd;

	*ret_detached = false;
	if (!*late) {
		fd = graft_mount_clone_path(edit->source, nofollow, edit->flags);
		*ret_detached = fd >= 0;
		if (fd != -EPERM)
			return fd;
		*late = true; /* no rights here; we may have more in the container's namespace */
	}
	fd = open(edit->source, O_PATH | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0));
	return fd < 0 ? -errno : fd;
}

static int settle_source(struct graft_mounter *mounter, const struct graft_edit *edit, struct graft_source *source,
			 struct graft_error *err)
{
	int rc = graft_mount_settle(mounter, source->fd, edit->flags, false);

	if (rc < 0)
		return graft_fail(err, GRAFT_MOUNT, -rc, "mount operation failed: %s", edit->source);
	return 0;
}

int graft_source_open(struct graft_mounter *mounter, const struct graft_edit *edit, bool *late,
		      const struct graft_log *log, struct graft_source *ret_source, struct graft_error *err)
{
	struct graft_source source = GRAFT_SOURCE_INIT;
	auto_close int fd = open_or_clone(edit, late, &source.detached);

	if (fd == -ENOENT && edit->optional) {
		graft_warn(log, "skipping %s: %s", edit->source, "it vanished");
		*ret_source = (struct graft_source)GRAFT_SOURCE_INIT;
		return 0;
	}
	if (fd < 0)
		return graft_fail_errno(err, -fd, "%s failed: %s", refuses_link(edit) ? "lstat" : "stat", edit->source);
	if (fstat(fd, &source.stat) < 0)
		return graft_fail_errno(err, errno, "stat failed: %s", edit->source);
	if (verify(edit, &source.stat, err) < 0)
		return -1;
	source.fd = fd;
	if (source.detached && settle_source(mounter, edit, &source, err) < 0)
		return -1;
	fd = -1;
	*ret_source = source;
	return 0;
}

/* Opens the same object by its path in the joined namespace. */
static int find_again(const struct graft_edit *edit, const struct graft_image_root *root, struct graft_source *source,
		      struct graft_error *err)
{
	struct stat st;
	auto_close int fd = graft_image_root_look(root, edit->source, refuses_link(edit) ? O_NOFOLLOW : 0);

	if (fd < 0)
		return graft_fail(err, GRAFT_MOUNT, -fd, "mount operation failed: %s", edit->source);
	if (fstat(fd, &st) < 0)
		return graft_fail_errno(err, errno, "stat failed: %s", edit->source);
	if (st.st_dev != source->stat.st_dev || st.st_ino != source->stat.st_ino)
		return graft_fail(err, GRAFT_UNSAFE, 0, "%s is a different file in the container's mount namespace",
				  edit->source);
	(void)close(source->fd);
	source->fd = TAKE_FD(fd);
	return 0;
}

int graft_source_bring(struct graft_mounter *mounter, const struct graft_edit *edit,
		       const struct graft_image_root *root, struct graft_source *source, struct graft_error *err)
{
	int fd;

	if (root && find_again(edit, root, source, err) < 0)
		return -1;
	if (!graft_mounter_detaches(mounter))
		return 0;
	fd = graft_mount_clone_fd(source->fd, edit->flags);
	if (fd < 0)
		return graft_fail(err, fd == -EPERM ? GRAFT_PERMISSION : GRAFT_MOUNT, -fd, "mount operation failed: %s",
				  edit->source);
	(void)close(source->fd);
	source->fd = fd;
	source->detached = true;
	return settle_source(mounter, edit, source, err);
}
