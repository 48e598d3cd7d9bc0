/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root: directories of the host. Lookups are done by base/beneath.c; here they are sped up by means
 * of our own procfs.
 */
#include "base/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "base/sys.h"

/* Reads /proc/self/fd/N. Returns 0, or -1 if this is not a procfs that shows us. */
static int read_own_path(int fd, char *text, size_t size)
{
	char link[64];
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, text, size);
	if (length <= 0 || (size_t)length >= size || text[0] != '/')
		return -1;
	text[length] = '\0';
	return 0;
}

static char *own_path_of(const char *directory, int fd)
{
	char text[PATH_MAX];
	struct statfs fs;

	/* The name of our own root is always this. */
	if (strcmp(directory, "/") == 0)
		return strdup(directory);
	if (statfs("/proc/self/fd", &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return NULL;
	return read_own_path(fd, text, sizeof(text)) < 0 ? NULL : strdup(text);
}

static struct graft_beneath make_host_beneath(const struct graft_root *root)
{
	return (struct graft_beneath){ .fd = root->fd, .no_openat2 = root->no_openat2 };
}

int graft_root_open(struct graft_root *ret_root, const char *host_directory, struct graft_error *err)
{
	int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	bool no_openat2 = false;
	/* Opens it and probes for openat2 with a single call. */
	int fd = graft_openat2(AT_FDCWD, host_directory, (uint64_t)flags, 0, 0);

	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
		no_openat2 = true;
		fd = open(host_directory, flags);
	}
	if (fd < 0)
		return graft_fail_errno(err, errno, "open failed: %s", host_directory);
	*ret_root = (struct graft_root)GRAFT_ROOT_INIT;
	ret_root->fd = fd;
	ret_root->no_openat2 = no_openat2;
	ret_root->own_path = own_path_of(host_directory, fd);
	return 0;
}

void graft_root_take(struct graft_root *ret_root, int take_fd)
{
	*ret_root = (struct graft_root)GRAFT_ROOT_INIT;
	ret_root->fd = take_fd;
}

void graft_root_close(struct graft_root *root)
{
	if (root->fd >= 0)
		(void)close(root->fd);
	free(root->own_path);
	*root = (struct graft_root)GRAFT_ROOT_INIT;
}

int graft_root_openat(const struct graft_root *root, const char *path, int flags)
{
	const struct graft_beneath at = make_host_beneath(root);

	return graft_beneath_openat(&at, path, flags);
}

bool graft_root_has(const struct graft_root *root, const char *path, int flags)
{
	auto_close int fd = graft_root_openat(root, path, O_PATH | flags);

	return fd >= 0;
}

int graft_root_stat(const struct graft_root *root, const char *path, struct stat *ret_stat)
{
	auto_close int fd = graft_root_openat(root, path, O_PATH);

	if (fd < 0)
		return fd;
	return fstat(fd, ret_stat) < 0 ? -errno : 0;
}

/* Returns the canonical path of `fd` according to our procfs, or NULL if that does not help. */
static const char *path_below(const struct graft_root *root, int fd, char *text, size_t size)
{
	size_t prefix = strlen(root->own_path);

	/*
	 * A file that was removed in the meantime is shown with a suffix, which could also be part
	 * of a name.
	 */
	if (read_own_path(fd, text, size) < 0 || graft_ends_with(text, " (deleted)"))
		return NULL;
	if (strcmp(root->own_path, "/") == 0)
		return text;
	if (strncmp(text, root->own_path, prefix) != 0)
		return NULL;
	if (text[prefix] == '\0')
		return "/";
	return text[prefix] == '/' ? text + prefix : NULL;
}

static int resolve(const struct graft_root *root, const char *path, int flags, struct graft_arena *arena,
		   const char **ret_path, int *ret_fd)
{
	const struct graft_beneath at = make_host_beneath(root);
	char text[PATH_MAX];
	const char *below = NULL;
	auto_close int fd = -1;
	int rc = graft_beneath_resolve_plain(&at, path, flags, arena, ret_path, ret_fd);

	if (rc != -ELOOP)
		return rc;
	if (!root->own_path || root->no_openat2)
		return graft_beneath_resolve_by_hand(&at, path, flags, arena, ret_path, ret_fd);
	/* Our procfs shows where a path with links ends. */
	fd = graft_root_openat(root, path, O_PATH | flags);
	if (fd < 0)
		return fd;
	below = path_below(root, fd, text, sizeof(text));
	if (!below)
		return graft_beneath_resolve_by_hand(&at, path, flags, arena, ret_path, ret_fd);
	*ret_path = graft_arena_strdup(arena, below);
	if (!*ret_path)
		return -ENOMEM;
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

int graft_root_resolve(const struct graft_root *root, const char *path, struct graft_arena *arena,
		       const char **ret_path, int *ret_fd)
{
	return resolve(root, path, 0, arena, ret_path, ret_fd);
}

int graft_root_resolve_directory(const struct graft_root *root, const char *path, struct graft_arena *arena,
				 const char **ret_path, int *ret_fd)
{
	return resolve(root, path, O_DIRECTORY, arena, ret_path, ret_fd);
}

int graft_root_read(const struct graft_root *root, const char *path, size_t max, struct graft_arena *arena,
		    const char **ret_bytes, size_t *ret_length)
{
	auto_close int fd = graft_root_openat(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return fd == -ENXIO ? -EINVAL : fd; /* it is a socket */
	return graft_read_fd(fd, max, arena, ret_bytes, ret_length);
}

int graft_root_read_foreign(const struct graft_root *root, const char *path, size_t max, struct graft_arena *arena,
			    const char **ret_bytes, size_t *ret_length)
{
	auto_close int path_fd = graft_root_openat(root, path, O_PATH);
	auto_close int fd = -1;
	char link[32];
	struct stat st;

	if (path_fd < 0)
		return path_fd;
	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : graft_read_fd(fd, max, arena, ret_bytes, ret_length);
}

int graft_root_mkdir(const struct graft_root *root, const char *path, mode_t mode, const struct graft_root_watch *watch,
		     int *ret_fd)
{
	const struct graft_beneath at = make_host_beneath(root);

	return graft_beneath_mountpoint(&at, path, true, mode, watch, ret_fd);
}

int graft_root_parent(const struct graft_root *root, const char *path, int *ret_parent_fd, char *name)
{
	const struct graft_beneath at = make_host_beneath(root);

	return graft_beneath_parent(&at, path, ret_parent_fd, name);
}
