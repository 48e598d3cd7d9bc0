/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore: the inverse of creating something and of rename(2) over an existing name. Uses
 * descriptors only; reads the old object through our own procfs, since an O_PATH descriptor cannot
 * be read and an unlinked inode cannot be linked again.
 */
#include "apply/namespace/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h> /* SEEK_DATA, SEEK_HOLE: musl has none before 1.2.3 */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/sys.h"

#define MAX_DATA ((off_t)64 * 1024 * 1024)
#define CHUNK    ((size_t)16 * 1024)

/*
 * Copies one run of data. Returns the number of bytes copied (short at the end of the file) or
 * -errno.
 */
static off_t copy_run(int from, int to, off_t start, off_t end)
{
	char bytes[CHUNK];
	off_t at = start;

	while (at < end) {
		size_t want = (size_t)(end - at) < sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);
		ssize_t n = pread(from, bytes, want, at);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		if (pwrite(to, bytes, (size_t)n, at) != n)
			return -EIO;
		at += n;
	}
	return at - start;
}

/* Holes stay holes: a sparse file of an image may have any size. */
static int copy_data(int from, int to, off_t size)
{
	off_t total = 0, at = 0;

	if (ftruncate(to, size) < 0)
		return -errno;
	while (at < size) {
		off_t data = lseek(from, at, SEEK_DATA), hole, n;

		if (data < 0)
			return errno == ENXIO ? 0 : -errno;
		hole = lseek(from, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		if (hole - data > MAX_DATA - total)
			return -EFBIG;
		n = copy_run(from, to, data, hole);
		if (n < 0)
			return (int)n;
		total += n;
		at = hole;
	}
	return 0;
}

static int copy_file(int proc_fd, int old_fd, const struct stat *st, int parent_fd, char *temporary)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	mode_t mode = st->st_mode & 07777;
	char number[16];
	auto_close int from = -1, to = -1;
	int rc;

	(void)snprintf(number, sizeof(number), "%d", old_fd);
	from = openat(proc_fd, number, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		return -errno;
	to = graft_temporary_file(parent_fd, 0600, temporary);
	if (to < 0)
		return to;
	rc = copy_data(from, to, st->st_size);
	/*
	 * Content matters most: without the right to give a file away it stays ours, and then never
	 * has set-id bits.
	 */
	if (rc == 0 && fchown(to, st->st_uid, st->st_gid) < 0)
		mode &= 0777;
	if (rc == 0 && (fchmod(to, mode) < 0 || futimens(to, times) < 0))
		rc = -errno;
	if (rc < 0)
		(void)unlinkat(parent_fd, temporary, 0);
	return rc;
}

static int copy_link(int old_fd, const struct stat *st, int parent_fd, char *temporary)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(old_fd, "", text, sizeof(text) - 1);
	int rc;

	if (length < 0)
		return -errno;
	text[length] = '\0';
	rc = graft_temporary_link(parent_fd, text, temporary);
	/* The owner of a link hardly matters; it is restored if permitted. */
	if (rc == 0 && fchownat(parent_fd, temporary, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return rc;
}

static int make_again(int proc_fd, int old_fd, int parent_fd, char *temporary)
{
	char number[16];
	struct stat st;

	if (fstat(old_fd, &st) < 0)
		return -errno;
	(void)snprintf(number, sizeof(number), "%d", old_fd);
	if (st.st_nlink > 0 && graft_temporary_hard_link(parent_fd, proc_fd, number, temporary) == 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return copy_file(proc_fd, old_fd, &st, parent_fd, temporary);
	if (S_ISLNK(st.st_mode))
		return copy_link(old_fd, &st, parent_fd, temporary);
	return graft_temporary_node(parent_fd, st.st_mode, st.st_rdev, temporary);
}

/* Without statx(2) (an old seccomp filter) there is no birth time. */
static int mark_by_stat(int dir_fd, const char *name, int flags, struct graft_mark *ret_mark)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, flags) < 0)
		return errno == ENOENT ? 0 : -errno;
	*ret_mark = (struct graft_mark){
		.there = true,
		.dev_major = major(st.st_dev),
		.dev_minor = minor(st.st_dev),
		.ino = st.st_ino,
		.type = st.st_mode & S_IFMT,
	};
	return 0;
}

static int mark(int dir_fd, const char *name, int flags, struct graft_mark *ret_mark)
{
	struct graft_statx st = { .mask = 0 };

	*ret_mark = (struct graft_mark){ .there = false };
	if (graft_statx(dir_fd, name, flags, GRAFT_STATX_TYPE | GRAFT_STATX_INO | GRAFT_STATX_BTIME, &st) < 0) {
		if (errno == ENOSYS || errno == EPERM)
			return mark_by_stat(dir_fd, name, flags, ret_mark);
		return errno == ENOENT ? 0 : -errno;
	}
	*ret_mark = (struct graft_mark){
		.there = true,
		.dev_major = st.dev_major,
		.dev_minor = st.dev_minor,
		.ino = st.ino,
		.type = st.mode & S_IFMT,
		.born_s = (st.mask & GRAFT_STATX_BTIME) != 0 ? st.btime.s : 0,
		.born_ns = (st.mask & GRAFT_STATX_BTIME) != 0 ? st.btime.ns : 0,
	};
	return 0;
}

int graft_mark(int parent_fd, const char *name, struct graft_mark *ret_mark)
{
	return mark(parent_fd, name, AT_SYMLINK_NOFOLLOW, ret_mark);
}

int graft_mark_fd(int fd, struct graft_mark *ret_mark)
{
	return mark(fd, "", AT_EMPTY_PATH, ret_mark);
}

bool graft_mark_is_same(const struct graft_mark *a, const struct graft_mark *b)
{
	return a->there == b->there && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       a->ino == b->ino && a->type == b->type && a->born_s == b->born_s && a->born_ns == b->born_ns;
}

/*
 * Whether `name` is ours. Returns 0, or -ESTALE if it is something else by now or that cannot be
 * determined.
 */
static int check_is_ours(int parent_fd, const char *name, const struct graft_mark *ours)
{
	struct graft_mark now;

	return graft_mark(parent_fd, name, &now) == 0 && graft_mark_is_same(&now, ours) ? 0 : -ESTALE;
}

/* File systems without support for the flags of renameat2(2) fail with EINVAL. */
static bool is_unknown_there(int rc)
{
	return rc == -EINVAL || rc == -ENOSYS;
}

static int rename_with(int parent_fd, const char *from, const char *to, unsigned int flags)
{
	return graft_renameat2(parent_fd, from, parent_fd, to, flags) < 0 ? -errno : 0;
}

static int unlink_here(int parent_fd, const char *name, int flags)
{
	return unlinkat(parent_fd, name, flags) < 0 ? -errno : 0;
}

/*
 * A directory is removed in place without that check: if another process made it, it is removed
 * only if it is empty.
 */
static int remove_ours(int parent_fd, const char *name, const struct graft_mark *ours)
{
	char aside[GRAFT_TEMPORARY_SIZE];
	int rc;

	if (S_ISDIR(ours->type))
		return unlink_here(parent_fd, name, AT_REMOVEDIR);
	rc = graft_temporary_move(parent_fd, name, aside);
	if (is_unknown_there(rc))
		return unlink_here(parent_fd, name, 0);
	if (rc == 0)
		rc = check_is_ours(parent_fd, aside, ours);
	if (rc == 0)
		return unlink_here(parent_fd, aside, 0);
	/*
	 * If another process replaced it that quickly, restore the name, unless a third object has
	 * it: then theirs stays under the temporary name with its content.
	 */
	if (rc == -ESTALE)
		(void)rename_with(parent_fd, aside, name, GRAFT_RENAME_NOREPLACE);
	return rc;
}

int graft_restore_nothing(int parent_fd, const char *name, const struct graft_mark *ours)
{
	struct graft_mark now;
	int rc = graft_mark(parent_fd, name, &now);

	if (rc == 0 && !now.there)
		rc = -ENOENT;
	if (rc == 0 && !graft_mark_is_same(&now, ours))
		rc = -ESTALE;
	return rc < 0 ? rc : remove_ours(parent_fd, name, ours);
}

/*
 * Exchanges both names atomically, so that the object that had ours can still be checked and get
 * its name back.
 */
static int exchange(int parent_fd, const char *temporary, const char *name, const struct graft_mark *ours)
{
	int rc = rename_with(parent_fd, temporary, name, GRAFT_RENAME_EXCHANGE);

	if (is_unknown_there(rc))
		return renameat(parent_fd, temporary, parent_fd, name) < 0 ? -errno : 0;
	if (rc < 0)
		return rc;
	rc = check_is_ours(parent_fd, temporary, ours);
	if (rc < 0 && rename_with(parent_fd, temporary, name, GRAFT_RENAME_EXCHANGE) < 0)
		return rc;
	(void)unlinkat(parent_fd, temporary, 0);
	return rc;
}

/* Renames the temporary to a name that nothing has. */
static int take_free_name(int parent_fd, const char *temporary, const char *name)
{
	int rc = rename_with(parent_fd, temporary, name, GRAFT_RENAME_NOREPLACE);

	if (is_unknown_there(rc))
		return renameat(parent_fd, temporary, parent_fd, name) < 0 ? -errno : 0;
	return rc == -EEXIST ? -ESTALE : rc;
}

/*
 * Gives the recreated object its name back, in exchange for ours or for nothing. Removes the object
 * on failure.
 */
static int put_back(int parent_fd, const char *temporary, const char *name, struct graft_mark *ours)
{
	struct graft_mark now, again;
	int rc = graft_mark(parent_fd, temporary, &again);

	if (rc == 0)
		rc = graft_mark(parent_fd, name, &now);
	if (rc == 0 && !now.there)
		rc = take_free_name(parent_fd, temporary, name);
	else if (rc == 0)
		rc = graft_mark_is_same(&now, ours) ? exchange(parent_fd, temporary, name, ours) : -ESTALE;
	if (rc < 0)
		(void)unlinkat(parent_fd, temporary, 0);
	else
		*ours = again;
	return rc;
}

int graft_restore(int proc_fd, int old_fd, int parent_fd, const char *name, struct graft_mark *ours)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	int rc = make_again(proc_fd, old_fd, parent_fd, temporary);

	return rc < 0 ? rc : put_back(parent_fd, temporary, name, ours);
}

int graft_restore_link(int parent_fd, const char *name, const char *text, struct graft_mark *ours)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	int rc = graft_temporary_link(parent_fd, text, temporary);

	return rc < 0 ? rc : put_back(parent_fd, temporary, name, ours);
}
