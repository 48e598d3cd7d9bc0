/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore: the inverse of rename(2) over an existing name. Knows descriptors only; the old object is read through our own
 * procfs, since an O_PATH descriptor cannot be read and an unlinked inode cannot be linked again.
 */
#include "apply/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h> /* SEEK_DATA, SEEK_HOLE: musl has none before 1.2.3 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"

#define MAX_DATA ((off_t)64 * 1024 * 1024)
#define CHUNK    ((size_t)16 * 1024)

/* Copies one run of data. Returns the bytes copied (short at the end of the file) or -errno. */
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

/* Holes stay holes: a sparse file of an image may state any size. */
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
	/* Content counts most: without the right to give a file away it is ours, and then never with set-id bits. */
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
	/* The owner of a link means next to nothing; it is put back where we may. */
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

static int rename_over(int parent_fd, const char *temporary, const char *name)
{
	int rc;

	if (renameat(parent_fd, temporary, parent_fd, name) == 0)
		return 0;
	rc = -errno;
	(void)unlinkat(parent_fd, temporary, 0);
	return rc;
}

int graft_restore(int proc_fd, int old_fd, int parent_fd, const char *name)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	int rc = make_again(proc_fd, old_fd, parent_fd, temporary);

	return rc < 0 ? rc : rename_over(parent_fd, temporary, name);
}

int graft_restore_link(int parent_fd, const char *name, const char *text)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	int rc = graft_temporary_link(parent_fd, text, temporary);

	return rc < 0 ? rc : rename_over(parent_fd, temporary, name);
}
