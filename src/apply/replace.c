/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replace: three ways to give a file new content; the first that works is used:
 *
 *	a nameless file (O_TMPFILE) is filled, given a name and renamed over the old one: a killed process leaves nothing behind,
 *	except between these last two calls
 *	a file with a name, if the file system has no nameless ones or there is no /proc
 *	the old file itself, if no new one may be made, or a new one cannot have the old one's owner, mode and attributes. Not atomic.
 */
#include "apply/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"

#define MAX_TRIES     4
#define NAME_SIZE     (NAME_MAX + 1)
#define ATTRIBUTE_MAX ((size_t)64 * 1024)

struct work {
	const struct graft_host_place *place;
	const char *name; /* of the place */
	char temporary[NAME_SIZE];
	bool is_new;
	const struct graft_replacement *how;
	const void *bytes;
	size_t length;
};

/*
 * Attributes that belong to the file and not to its content. A signature of the content
 * (security.ima) would be wrong for the new one.
 */
static bool is_kept_attribute(const char *attribute)
{
	return strncmp(attribute, "user.", 5) == 0 || strcmp(attribute, "security.selinux") == 0 ||
	       strcmp(attribute, "security.SMACK64") == 0 || strcmp(attribute, "system.posix_acl_access") == 0;
}

static int copy_attribute(int old_fd, int fd, const char *name, char *old_value, char *value)
{
	ssize_t old_length = fgetxattr(old_fd, name, old_value, ATTRIBUTE_MAX);
	ssize_t length = fgetxattr(fd, name, value, ATTRIBUTE_MAX);

	if (old_length < 0)
		return errno == ENODATA ? 0 : -errno;
	if (length == old_length && memcmp(value, old_value, (size_t)length) == 0)
		return 0;
	return fsetxattr(fd, name, old_value, (size_t)old_length, 0) < 0 ? -errno : 0;
}

static int copy_attributes(int old_fd, int fd)
{
	ssize_t length = flistxattr(old_fd, NULL, 0);
	auto_free char *names = NULL;
	int rc = 0;

	if (length <= 0)
		return length == 0 || errno == ENOTSUP ? 0 : -errno;
	names = malloc(3 * ATTRIBUTE_MAX);
	if (!names)
		return -ENOMEM;
	length = flistxattr(old_fd, names, ATTRIBUTE_MAX);
	if (length < 0)
		return -errno;
	for (const char *name = names; rc == 0 && name < names + length; name += strlen(name) + 1) {
		if (is_kept_attribute(name))
			rc = copy_attribute(old_fd, fd, name, names + ATTRIBUTE_MAX, names + 2 * ATTRIBUTE_MAX);
	}
	return rc;
}

/* The owner first: changing it clears set-id bits. */
static int make_alike(const struct work *work, int fd)
{
	auto_close int old_fd = -1;
	struct stat st;

	if (work->is_new)
		return fchmod(fd, work->how->mode) < 0 ? -errno : 0;
	old_fd = graft_host_place_open(work->place, O_RDONLY | O_NONBLOCK);
	if (old_fd < 0)
		return old_fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid != work->place->st.st_uid || st.st_gid != work->place->st.st_gid) &&
	    fchown(fd, work->place->st.st_uid, work->place->st.st_gid) < 0)
		return -errno;
	if (fchmod(fd, work->place->st.st_mode & 07777) < 0)
		return -errno;
	return copy_attributes(old_fd, fd);
}

/*
 * Calls `make` with the temporary name. If the name is taken, by the leftover of a killed process
 * or, in a shared directory, by anything, it is removed or another name is used.
 */
static int take_replacement_name(struct work *work, int (*make)(const struct work *work, int fd), int fd)
{
	for (int i = 0; i < MAX_TRIES; i++) {
		int rc = make(work, fd);
		uint64_t number;

		if (rc != -EEXIST)
			return rc;
		if (unlinkat(work->place->dir_fd, work->temporary, 0) == 0 || errno == ENOENT)
			continue;
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		(void)snprintf(work->temporary, sizeof(work->temporary), ".%.220s.%016llx%s", work->name,
			       (unsigned long long)number, work->how->suffix);
	}
	return -EEXIST;
}

static int make_replacement(const struct work *work, int fd)
{
	(void)fd;
	fd = openat(work->place->dir_fd, work->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int make_name(const struct work *work, int fd)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, work->place->dir_fd, work->temporary, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int fill_replacement(const struct work *work, int fd)
{
	int rc = make_alike(work, fd);

	if (rc == 0)
		rc = graft_write_all(fd, work->bytes, work->length);
	if (rc == 0 && work->how->sync && fsync(fd) < 0)
		rc = -errno;
	return rc;
}

/*
 * Errors that no other way of writing avoids, such as a full disk, where the last way would leave
 * half a file, or another writer.
 */
static bool is_final(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT || rc == -EIO || rc == -ENOMEM || rc == -EFBIG || rc == -EAGAIN ||
	       rc == -ESTALE;
}

static int rename_over(const struct work *work)
{
	int rc = 0;

	if (renameat(work->place->dir_fd, work->temporary, work->place->dir_fd, work->name) < 0) {
		rc = -errno;
		(void)unlinkat(work->place->dir_fd, work->temporary, 0);
	}
	return rc;
}

static int write_nameless(struct work *work)
{
	auto_close int fd = openat(work->place->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = fill_replacement(work, fd);
	if (rc == 0)
		rc = take_replacement_name(work, make_name, fd);
	return rc < 0 ? rc : rename_over(work);
}

/*
 * Another process may have removed our file as a leftover and be filling its own under this name.
 */
static bool is_temporary_named(const struct work *work, int fd)
{
	struct stat ours, named;

	return fstat(fd, &ours) == 0 &&
	       fstatat(work->place->dir_fd, work->temporary, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

static int write_named(struct work *work)
{
	auto_close int fd = take_replacement_name(work, make_replacement, -1);
	int rc;

	if (fd < 0)
		return fd;
	rc = fill_replacement(work, fd);
	if (rc == 0 && !is_temporary_named(work, fd))
		return -EAGAIN;
	if (rc == 0)
		return rename_over(work);
	(void)unlinkat(work->place->dir_fd, work->temporary, 0);
	return rc;
}

static int overwrite_in_place(struct work *work)
{
	auto_close int fd = graft_host_place_open(work->place, O_WRONLY | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return fd;
	/*
	 * SECURITY: the file may have another name, under which an attacker wants it overwritten.
	 */
	if (work->place->st.st_nlink > 1)
		return -EMLINK;
	/*
	 * Reserve space before the first byte is changed; a file system that cannot reserve space
	 * is tried anyway.
	 */
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)work->length) < 0 && is_final(-errno))
		return -errno;
	rc = graft_write_all(fd, work->bytes, work->length);
	if (rc == 0 && ftruncate(fd, (off_t)work->length) < 0)
		rc = -errno;
	if (rc == 0 && work->how->sync && fsync(fd) < 0)
		rc = -errno;
	return rc;
}

/* Returns 0 if the place is that of a file, existing or to be made, or -errno. */
static int check_replaceable(struct work *work)
{
	const struct stat *st = &work->place->st;

	work->is_new = work->place->found != GRAFT_HOST_OBJECT;
	if (work->is_new)
		return work->how->make ? 0 : -ENOENT;
	if (S_ISREG(st->st_mode))
		return 0;
	return S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL;
}

int graft_replace_at(const struct graft_host_place *place, const struct graft_replacement *how, const void *bytes,
		     size_t length)
{
	static int (*const ways[])(struct work * work) = { write_nameless, write_named, overwrite_in_place };
	struct work work = { .place = place, .name = place->name, .how = how, .bytes = bytes, .length = length };
	int rc = check_replaceable(&work);

	if (rc < 0)
		return rc;
	(void)snprintf(work.temporary, sizeof(work.temporary), ".%.240s%s", work.name, how->suffix);
	for (size_t i = 0; i < GRAFT_COUNT(ways) - (work.is_new ? 1 : 0); i++) {
		rc = ways[i](&work);
		if (rc == 0 || is_final(rc))
			break;
	}
	return rc;
}

int graft_replace(int dir_fd, const char *name, const struct graft_replacement *how, const void *bytes, size_t length)
{
	int rc = -ESTALE;

	for (int i = 0; i < GRAFT_REPLACE_TRIES && rc == -ESTALE; i++) {
		auto_host_place struct graft_host_place place = GRAFT_HOST_PLACE_INIT;

		rc = graft_host_place_find(dir_fd, -1, name, GRAFT_HOST_TO_WRITE, &place);
		if (rc == 0)
			rc = graft_replace_at(&place, how, bytes, length);
	}
	return rc;
}
