/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replace: three ways to give a file another content, the first that works:
 *
 *	a nameless file (O_TMPFILE), filled, given a name and renamed over the old one: whoever is killed leaves nothing, but for the moment
 *	between these last two calls
 *	a file with a name, where the file system has no nameless ones or there is no /proc
 *	the old file itself, where no new one may be made, or a new one cannot have the old one's owner, mode and attributes. Not atomic.
 */
#include "apply/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"

#define MAX_LINKS     40
#define MAX_TRIES     4
#define NAME_SIZE     (NAME_MAX + 1)
#define ATTRIBUTE_MAX ((size_t)64 * 1024)

/* Where the file really is, behind all links, and what it becomes. */
struct place {
	int dir_fd;
	char name[NAME_SIZE], temporary[NAME_SIZE];
	bool is_new;
	struct stat st; /* unless it is new */
	const struct graft_replacement *how;
	const void *bytes;
	size_t length;
};

static void leave_place(struct place *place)
{
	if (place->dir_fd >= 0)
		(void)close(place->dir_fd);
}

/* Moves on to where the link says. 0 or -errno. */
static int follow(struct place *place)
{
	char text[PATH_MAX], *slash;
	ssize_t length = readlinkat(place->dir_fd, place->name, text, sizeof(text) - 1);
	const char *name = text;
	int fd;

	if (length < 0)
		return -errno;
	text[length] = '\0';
	slash = strrchr(text, '/');
	if (slash)
		name = slash + 1;
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strlen(name) >= NAME_SIZE)
		return -EISDIR;
	(void)snprintf(place->name, sizeof(place->name), "%s", name);
	if (!slash)
		return 0;
	slash[slash == text] = '\0';
	fd = openat(place->dir_fd, text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)close(place->dir_fd);
	place->dir_fd = fd;
	return 0;
}

/* From place->dir_fd and place->name to where the links there lead. 0 or -errno. */
static int find_place(struct place *place)
{
	for (int i = 0; i < MAX_LINKS; i++) {
		int rc;

		if (fstatat(place->dir_fd, place->name, &place->st, AT_SYMLINK_NOFOLLOW) < 0) {
			place->is_new = errno == ENOENT && place->how->make;
			return place->is_new ? 0 : -errno;
		}
		if (S_ISREG(place->st.st_mode))
			return 0;
		if (!S_ISLNK(place->st.st_mode))
			return S_ISDIR(place->st.st_mode) ? -EISDIR : -EINVAL;
		rc = follow(place);
		if (rc < 0)
			return rc;
	}
	return -ELOOP;
}

/* What belongs to the file and not to its content. A signature of the content (security.ima) would be wrong for the new one. */
static bool is_kept(const char *attribute)
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
		if (is_kept(name))
			rc = copy_attribute(old_fd, fd, name, names + ATTRIBUTE_MAX, names + 2 * ATTRIBUTE_MAX);
	}
	return rc;
}

/* Owner first: it takes set-id bits away. */
static int make_alike(const struct place *place, int fd)
{
	auto_close int old_fd = -1;
	struct stat st;

	if (place->is_new)
		return fchmod(fd, place->how->mode) < 0 ? -errno : 0;
	old_fd = openat(place->dir_fd, place->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (old_fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid != place->st.st_uid || st.st_gid != place->st.st_gid) &&
	    fchown(fd, place->st.st_uid, place->st.st_gid) < 0)
		return -errno;
	if (fchmod(fd, place->st.st_mode & 07777) < 0)
		return -errno;
	return copy_attributes(old_fd, fd);
}

/* Calls `make` with the temporary name; what has the name is what a killed process left. */
static int take_name(const struct place *place, int (*make)(const struct place *place, int fd), int fd)
{
	for (int i = 0; i < MAX_TRIES; i++) {
		int rc = make(place, fd);

		if (rc != -EEXIST)
			return rc;
		if (unlinkat(place->dir_fd, place->temporary, 0) < 0 && errno != ENOENT)
			return -errno;
	}
	return -EEXIST;
}

static int make_file(const struct place *place, int fd)
{
	(void)fd;
	fd = openat(place->dir_fd, place->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int make_name(const struct place *place, int fd)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, place->dir_fd, place->temporary, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int fill(const struct place *place, int fd)
{
	int rc = make_alike(place, fd);

	if (rc == 0)
		rc = graft_write_all(fd, place->bytes, place->length);
	if (rc == 0 && place->how->sync && fsync(fd) < 0)
		rc = -errno;
	return rc;
}

/* Takes a full disk for what it is: no other way of writing helps, and the last one would leave half a file. So with another writer. */
static bool is_final(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT || rc == -EIO || rc == -ENOMEM || rc == -EFBIG || rc == -EAGAIN;
}

static int rename_over(const struct place *place)
{
	int rc = 0;

	if (renameat(place->dir_fd, place->temporary, place->dir_fd, place->name) < 0) {
		rc = -errno;
		(void)unlinkat(place->dir_fd, place->temporary, 0);
	}
	return rc;
}

static int write_nameless(const struct place *place)
{
	auto_close int fd = openat(place->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = fill(place, fd);
	if (rc == 0)
		rc = take_name(place, make_name, fd);
	return rc < 0 ? rc : rename_over(place);
}

/* Another process, which took our file for what a killed one had left, may be filling its own under the name. */
static bool is_named(const struct place *place, int fd)
{
	struct stat ours, named;

	return fstat(fd, &ours) == 0 && fstatat(place->dir_fd, place->temporary, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

static int write_named(const struct place *place)
{
	auto_close int fd = take_name(place, make_file, -1);
	int rc;

	if (fd < 0)
		return fd;
	rc = fill(place, fd);
	if (rc == 0 && !is_named(place, fd))
		return -EAGAIN;
	if (rc == 0)
		return rename_over(place);
	(void)unlinkat(place->dir_fd, place->temporary, 0);
	return rc;
}

static int write_in_place(const struct place *place)
{
	auto_close int fd = openat(place->dir_fd, place->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return -errno;
	/* Room before the first byte is changed; a file system that cannot promise it has to be tried. */
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)place->length) < 0 && is_final(-errno))
		return -errno;
	rc = graft_write_all(fd, place->bytes, place->length);
	if (rc == 0 && ftruncate(fd, (off_t)place->length) < 0)
		rc = -errno;
	if (rc == 0 && place->how->sync && fsync(fd) < 0)
		rc = -errno;
	return rc;
}

int graft_replace(int dir_fd, const char *name, const struct graft_replacement *how, const void *bytes, size_t length)
{
	static int (*const ways[])(const struct place *place) = { write_nameless, write_named, write_in_place };
	__attribute__((cleanup(leave_place))) struct place place = { .how = how, .bytes = bytes, .length = length };
	int rc;

	place.dir_fd = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place.dir_fd < 0)
		return -errno;
	if (strlen(name) >= NAME_SIZE)
		return -ENAMETOOLONG;
	(void)snprintf(place.name, sizeof(place.name), "%s", name);
	rc = find_place(&place);
	if (rc < 0)
		return rc;
	(void)snprintf(place.temporary, sizeof(place.temporary), ".%.240s%s", place.name, how->suffix);
	for (size_t i = 0; i < GRAFT_COUNT(ways) - (place.is_new ? 1 : 0); i++) {
		rc = ways[i](&place);
		if (rc == 0 || is_final(rc))
			break;
	}
	return rc;
}
