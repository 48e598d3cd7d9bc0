/* SPDX-License-Identifier: Apache-2.0 */
/* host_file: reads, writes and removes one file of the host by its path, in the words of errors. How a file is replaced is apply/replace.h's. */
#include "apply/host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/replace.h"
#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/root.h"

/* What graft_fail_errno() takes for an image's doing, a link or a read-only file system, is the host's here. */
static int fail(int sys, const char *verb, const char *path, struct graft_error *err)
{
	bool is_hosts = sys == EROFS || sys == ELOOP || sys == EXDEV;

	return is_hosts ? graft_fail(err, GRAFT_IO, sys, "cannot %s %s", verb, path)
			: graft_fail_errno(err, sys, "cannot %s %s", verb, path);
}

int graft_host_file_read(const char *path, size_t max, struct graft_arena *arena, const char **ret_bytes,
			 size_t *ret_length, struct graft_error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc;

	*ret_bytes = NULL;
	*ret_length = 0;
	if (fd < 0 && errno == ENOENT)
		return 0;
	rc = fd < 0 ? -errno : graft_read_fd(fd, max, arena, ret_bytes, ret_length);
	if (rc == -EFBIG)
		return graft_fail(err, GRAFT_TOO_BIG, EFBIG, "cannot read %s", path);
	if (rc < 0)
		return fail(-rc, "read", path, err);
	return 1;
}

/* Makes one directory where there is none. Returns its descriptor or -errno. */
static int enter(int fd, const char *name)
{
	bool is_new = mkdirat(fd, name, 0755) == 0;
	int next;

	if (!is_new && errno != EEXIST)
		return -errno;
	next = openat(fd, name,
		      is_new ? O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (next < 0)
		return -errno;
	if (is_new)
		(void)fchmod(next, 0755); /* whatever the umask; a directory that cannot have it is usable still */
	return next;
}

/* Makes what is missing of `path`, whose slashes it overwrites. Returns the last one's descriptor or -errno. */
static int make_directories(char *path)
{
	int fd = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && *(path += strspn(path, "/"))) {
		char *end = path + strcspn(path, "/");
		bool is_last = !*end;
		int deeper;

		*end = '\0';
		deeper = enter(fd, path);
		(void)close(fd);
		fd = deeper;
		path = is_last ? end : end + 1;
	}
	return fd;
}

/*
 * Opens the directory of `path` and gives the last component. The existing part is opened as a whole, since who may pass through a directory
 * need not be able to make one in it. Returns the descriptor or -errno.
 */
static int open_parent(const char *path, const char **ret_name)
{
	char text[PATH_MAX], *slash;
	int fd;

	if (strlen(path) >= sizeof(text))
		return -ENAMETOOLONG;
	memcpy(text, path, strlen(path) + 1);
	slash = strrchr(text, '/');
	*ret_name = slash ? path + (slash - text) + 1 : path;
	if (!**ret_name)
		return -EISDIR;
	if (!slash)
		return open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	slash[slash == text] = '\0';
	fd = open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 && errno == ENOENT ? make_directories(text) : fd < 0 ? -errno : fd;
}

/* A pipe, a terminal, a socket: written to, not replaced. 1, or 0 when `path` is none, or -errno. */
static int write_stream(const char *path, const void *bytes, size_t length)
{
	struct stat st;
	auto_close int fd = -1;
	int rc;

	if (stat(path, &st) < 0 || !(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
		return 0;
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	rc = graft_write_all(fd, bytes, length);
	return rc < 0 ? rc : 1;
}

int graft_host_file_write(const char *path, const void *bytes, size_t length, mode_t mode, struct graft_error *err)
{
	const struct graft_replacement how = { .suffix = ".graft.tmp", .make = true, .mode = mode, .sync = true };
	const char *name;
	auto_close int dir_fd = -1;
	int rc = write_stream(path, bytes, length);

	if (rc == 0) {
		rc = dir_fd = open_parent(path, &name);
		if (rc >= 0)
			rc = graft_replace(dir_fd, name, &how, bytes, length);
	}
	return rc < 0 ? fail(-rc, "write", path, err) : 0;
}

int graft_host_file_remove(const char *path, struct graft_error *err)
{
	if (unlink(path) < 0 && errno != ENOENT)
		return fail(errno, "remove", path, err);
	return 0;
}
