/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_file: reads, writes and removes one file of the host by its path and reports errors.
 * apply/replace.h determines how a file is replaced.
 */
#include "apply/host_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/host_place.h"
#include "apply/replace.h"
#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/root.h"

/*
 * graft_fail_errno() blames an image for errors such as a link or a read-only file system; here the
 * host is the cause.
 */
static int fail_host_file(int sys, const char *verb, const char *path, struct graft_error *err)
{
	bool is_hosts = sys == EROFS || sys == ELOOP || sys == EXDEV;

	return is_hosts ? graft_fail(err, GRAFT_IO, sys, "cannot %s %s", verb, path)
			: graft_fail_errno(err, sys, "cannot %s %s", verb, path);
}

/* If a rule of host_place was violated, reports that as the reason. */
static int fail_place(const struct graft_host_place *place, int sys, const char *verb, const char *path,
		      struct graft_error *err)
{
	bool denied = sys == EACCES || sys == EPERM;

	if (denied && place->why[0] != '\0')
		return graft_fail(err, GRAFT_PERMISSION, 0, "cannot %s %s: %s", verb, path, place->why);
	return fail_host_file(sys, verb, path, err);
}

/* ---- reading ---- */

static int open_to_read(const char *path, struct graft_host_place *place)
{
	int rc = graft_host_place_find(AT_FDCWD, -1, path, GRAFT_HOST_OWN_LINKS, place);

	if (rc < 0)
		return rc;
	switch (place->found) {
	case GRAFT_HOST_NOTHING:
		return -ENOENT;
	case GRAFT_HOST_FOREIGN_LINK:
		return -EACCES;
	case GRAFT_HOST_OBJECT:
		break;
	}
	return graft_host_place_open(place, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

int graft_host_file_read(const char *path, size_t max, struct graft_arena *arena, const char **ret_bytes,
			 size_t *ret_length, struct graft_error *err)
{
	auto_host_place struct graft_host_place place = GRAFT_HOST_PLACE_INIT;
	auto_close int fd = -ESTALE;
	int rc;

	*ret_bytes = NULL;
	*ret_length = 0;
	for (int i = 0; i < GRAFT_REPLACE_TRIES && fd == -ESTALE; i++) {
		graft_host_place_close(&place);
		fd = open_to_read(path, &place);
	}
	if (fd == -ENOENT)
		return 0;
	rc = fd < 0 ? fd : graft_read_fd(fd, max, arena, ret_bytes, ret_length);
	if (rc == -EFBIG)
		return graft_fail(err, GRAFT_TOO_BIG, EFBIG, "cannot read %s", path);
	if (rc == -EINVAL) {
		(void)graft_fail(err, GRAFT_INVALID, 0, "cannot read %s: it is not a regular file", path);
		return graft_with_hint(err, "Remove it, or name another file.");
	}
	return rc < 0 ? fail_place(&place, -rc, "read", path, err) : 1;
}

/* ---- writing ---- */

static bool is_host_stream(const struct graft_host_place *place)
{
	return place->found == GRAFT_HOST_OBJECT && (S_ISFIFO(place->st.st_mode) || S_ISCHR(place->st.st_mode));
}

/* Writes to a pipe or terminal, which is not replaced. */
static int write_stream(const struct graft_host_place *place, const void *bytes, size_t length)
{
	auto_close int fd = graft_host_place_open(place, O_WRONLY | O_NOCTTY);

	return fd < 0 ? fd : graft_write_all(fd, bytes, length);
}

int graft_host_file_write(const char *path, const void *bytes, size_t length, mode_t mode, struct graft_error *err)
{
	const unsigned int flags = GRAFT_HOST_MAKE_PARENTS | GRAFT_HOST_OWN_LINKS | GRAFT_HOST_TO_WRITE;
	const struct graft_replacement how = { .suffix = ".graft.tmp", .make = true, .mode = mode, .sync = true };
	auto_host_place struct graft_host_place place = GRAFT_HOST_PLACE_INIT;
	int rc = -ESTALE;

	for (int i = 0; i < GRAFT_REPLACE_TRIES && rc == -ESTALE; i++) {
		graft_host_place_close(&place);
		rc = graft_host_place_find(AT_FDCWD, -1, path, flags, &place);
		if (rc == 0)
			rc = is_host_stream(&place) ? write_stream(&place, bytes, length)
						    : graft_replace_at(&place, &how, bytes, length);
	}
	return rc < 0 ? fail_place(&place, -rc, "write", path, err) : 0;
}

/* Returns a descriptor or -errno; -ESTALE if something else is there by now. */
static int open_to_append(const struct graft_host_place *place, int flags)
{
	int fd;

	if (place->found == GRAFT_HOST_OBJECT)
		return graft_host_place_open(place, flags);
	fd = openat(place->dir_fd, place->name, flags | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd >= 0)
		return fd;
	return errno == EEXIST ? -ESTALE : -errno;
}

int graft_host_log_open(const char *path, int flags, bool make_parents, struct graft_error *err)
{
	const unsigned int how = GRAFT_HOST_TO_WRITE | GRAFT_HOST_MAGIC | (make_parents ? GRAFT_HOST_MAKE_PARENTS : 0u);
	auto_host_place struct graft_host_place place = GRAFT_HOST_PLACE_INIT;
	int fd = -ESTALE;

	for (int i = 0; i < GRAFT_REPLACE_TRIES && fd == -ESTALE; i++) {
		graft_host_place_close(&place);
		fd = graft_host_place_find(AT_FDCWD, -1, path, how, &place);
		if (fd == 0)
			fd = open_to_append(&place, flags | O_WRONLY | O_APPEND | O_NOCTTY);
	}
	return fd < 0 ? fail_place(&place, -fd, "log to", path, err) : fd;
}

static int remove_here(const char *path, int flags, struct graft_error *err)
{
	auto_host_place struct graft_host_place place = GRAFT_HOST_PLACE_INIT;
	int rc = graft_host_place_find(AT_FDCWD, -1, path, GRAFT_HOST_NO_FOLLOW, &place);

	if (rc == 0 && place.found != GRAFT_HOST_NOTHING && unlinkat(place.dir_fd, place.name, flags) < 0)
		rc = -errno;
	return rc < 0 && rc != -ENOENT ? fail_place(&place, -rc, "remove", path, err) : 0;
}

int graft_host_file_remove(const char *path, struct graft_error *err)
{
	return remove_here(path, 0, err);
}

int graft_host_folder_remove(const char *path, struct graft_error *err)
{
	return remove_here(path, AT_REMOVEDIR, err);
}

int graft_host_folder_open(const char *path, struct graft_error *err)
{
	const unsigned int flags = GRAFT_HOST_MAKE_PARENTS | GRAFT_HOST_DIRECTORY;
	auto_host_place struct graft_host_place place = GRAFT_HOST_PLACE_INIT;
	int rc = graft_host_place_find(AT_FDCWD, -1, path, flags, &place), fd;

	fd = rc < 0 ? -1 : openat(place.dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rc == 0 && fd < 0)
		rc = -errno;
	return rc < 0 ? fail_place(&place, -rc, "create", path, err) : fd;
}

void graft_host_tree_remove(int parent_fd, const char *name)
{
	auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int fd;

	if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
		return;
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		(void)close(fd);
	while (dir && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			graft_host_tree_remove(dirfd(dir), entry->d_name);
	}
	(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}
