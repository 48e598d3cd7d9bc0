/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root: lookups below a root directory. The kernel resolves where it can (openat2), base/walk.c otherwise and for everything that creates.
 * Knows nothing of containers or drivers; every path may be hostile, no result is a path that is opened again.
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

#include "base/cleanup.h"
#include "base/sys.h"
#include "base/walk.h"

#define RESOLVE    (GRAFT_RESOLVE_IN_ROOT | GRAFT_RESOLVE_NO_MAGICLINKS)
#define PATH_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* openat2 gives EAGAIN when something was renamed while ".." was resolved; the walk is the way out of a busy renamer. */
#define MAX_RACES          32
#define UNKNOWN_SIZE_CHUNK ((size_t)8 * 1024)

/* /proc/self/fd/N as text; 0, or -1 when this is not a procfs that shows us. */
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

	/* Our own root has this name by definition. */
	if (strcmp(directory, "/") == 0)
		return strdup(directory);
	if (statfs("/proc/self/fd", &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return NULL;
	return read_own_path(fd, text, sizeof(text)) < 0 ? NULL : strdup(text);
}

int graft_root_open(struct graft_root *ret_root, const char *host_directory, struct graft_error *err)
{
	int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	bool no_openat2 = false;
	/* Opening it and probing for openat2 is one call. */
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

/* open(2) of what a walk has found. */
static int open_found(struct graft_walk *walk, int flags)
{
	int fd;

	if (!(flags & O_PATH)) {
		/* O_NOFOLLOW: what has become a link since is not followed. */
		fd = openat(walk->parent_fd, walk->name, flags | O_NOFOLLOW | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if ((flags & O_DIRECTORY) && !S_ISDIR(walk->stat.st_mode))
		return -ENOTDIR;
	return TAKE_FD(walk->fd);
}

static int open_by_hand(const struct graft_root *root, const char *path, int flags)
{
	auto_walk struct graft_walk walk;
	int rc = graft_walk_path(&walk, root, path, !(flags & O_NOFOLLOW), NULL);

	return rc < 0 ? rc : open_found(&walk, flags);
}

int graft_root_openat(const struct graft_root *root, const char *path, int flags)
{
	if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
		return -EINVAL;
	if (flags & O_PATH)
		flags &= PATH_FLAGS; /* openat2 refuses what open(2) ignores */
	for (int i = 0; !root->no_openat2 && i < MAX_RACES; i++) {
		int fd = graft_openat2(root->fd, path, (uint64_t)(flags | O_CLOEXEC), 0, RESOLVE);

		if (fd >= 0)
			return fd;
		/* EPERM may be a seccomp filter's; if it is the file's, the walk meets it too. */
		if (errno == ENOSYS || errno == EPERM)
			break;
		if (errno != EAGAIN)
			return -errno;
	}
	return open_by_hand(root, path, flags);
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

static bool ends_with(const char *s, const char *end)
{
	size_t length = strlen(s), end_length = strlen(end);

	return length >= end_length && strcmp(s + length - end_length, end) == 0;
}

/* The canonical path of `fd` by its name in our procfs, or NULL when that does not tell. */
static const char *path_below(const struct graft_root *root, int fd, char *text, size_t size)
{
	size_t prefix = strlen(root->own_path);

	/* A file that was removed meanwhile is shown with a suffix that may also be a part of a name. */
	if (read_own_path(fd, text, size) < 0 || ends_with(text, " (deleted)"))
		return NULL;
	if (strcmp(root->own_path, "/") == 0)
		return text;
	if (strncmp(text, root->own_path, prefix) != 0)
		return NULL;
	if (text[prefix] == '\0')
		return "/";
	return text[prefix] == '/' ? text + prefix : NULL;
}

static int resolve_by_hand(const struct graft_root *root, const char *path, int flags, struct graft_arena *arena,
			   const char **ret_path, int *ret_fd)
{
	auto_walk struct graft_walk walk;
	int rc = graft_walk_path(&walk, root, path, true, NULL);

	if (rc < 0)
		return rc;
	if ((flags & O_DIRECTORY) && !S_ISDIR(walk.stat.st_mode))
		return -ENOTDIR;
	if (strcmp(walk.name, ".") != 0)
		*ret_path = graft_arena_printf(arena, "%s/%s", walk.path, walk.name);
	else
		*ret_path = graft_arena_strdup(arena, walk.path[0] != '\0' ? walk.path : "/");
	if (!*ret_path)
		return -ENOMEM;
	if (ret_fd)
		*ret_fd = TAKE_FD(walk.fd);
	return 0;
}

/* Absolute, and no component is "", "." or "..": such a path without links is its own canonical form. */
static bool is_plain(const char *path)
{
	if (path[0] != '/')
		return false;
	if (path[1] == '\0')
		return true;
	while (*path == '/') {
		size_t length = strcspn(++path, "/");

		if (length == 0 || (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.'))))
			return false;
		path += length;
	}
	return true;
}

/* O_PATH of a path that leads where it says; -ELOOP when it cannot be told so, whatever the reason. */
static int open_plain(const struct graft_root *root, const char *path, int flags, uint64_t resolve)
{
	int fd;

	if (root->no_openat2 || !is_plain(path))
		return -ELOOP;
	fd = graft_openat2(root->fd, path, (uint64_t)(flags | O_PATH | O_CLOEXEC), 0,
			   RESOLVE | GRAFT_RESOLVE_NO_SYMLINKS | resolve);
	if (fd >= 0)
		return fd;
	return errno == ENOSYS || errno == EPERM || errno == EAGAIN ? -ELOOP : -errno;
}

/*
 * /lib, /bin and their like are links to directories below /usr on most systems, and the only links in most paths. Puts what such a link says in its place; NULL
 * when a path does not begin with one that is relative. What comes out is opened like any other path that may have no link.
 */
static const char *without_top_link(const struct graft_root *root, const char *path, char buffer[PATH_MAX])
{
	size_t name_length = path[0] == '/' ? strcspn(path + 1, "/") : 0;
	const char *rest = path + 1 + name_length;
	char name[NAME_MAX + 1];
	ssize_t length;

	if (root->no_openat2 || name_length == 0 || name_length > NAME_MAX)
		return NULL;
	memcpy(name, path + 1, name_length);
	name[name_length] = '\0';
	buffer[0] = '/';
	length = readlinkat(root->fd, name, buffer + 1, PATH_MAX - 1);
	if (length <= 0 || buffer[1] == '/' || (size_t)length + strlen(rest) + 2 > PATH_MAX)
		return NULL;
	memcpy(buffer + 1 + length, rest, strlen(rest) + 1);
	return buffer;
}

int graft_root_look_plain(const struct graft_root *root, const char *path)
{
	int fd = open_plain(root, path, 0, GRAFT_RESOLVE_NO_XDEV);

	if (fd < 0)
		return fd;
	(void)close(fd);
	return 0;
}

/* Of a path with links: our procfs tells where it led, where the root is trusted; else the walk does. */
static int resolve_links(const struct graft_root *root, const char *path, int flags, struct graft_arena *arena,
			 const char **ret_path, int *ret_fd)
{
	char text[PATH_MAX];
	const char *below = NULL;
	auto_close int fd = -1;

	if (!root->own_path || root->no_openat2)
		return resolve_by_hand(root, path, flags, arena, ret_path, ret_fd);
	fd = graft_root_openat(root, path, O_PATH | flags);
	if (fd < 0)
		return fd;
	below = path_below(root, fd, text, sizeof(text));
	if (!below)
		return resolve_by_hand(root, path, flags, arena, ret_path, ret_fd);
	*ret_path = graft_arena_strdup(arena, below);
	if (!*ret_path)
		return -ENOMEM;
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

static int resolve(const struct graft_root *root, const char *path, int flags, struct graft_arena *arena,
		   const char **ret_path, int *ret_fd)
{
	char buffer[PATH_MAX];
	const char *plain = path;
	/* Most paths have no links, and what they are is found by opening them. */
	auto_close int fd = open_plain(root, path, flags, 0);

	if (fd == -ELOOP) {
		plain = without_top_link(root, path, buffer);
		fd = plain ? open_plain(root, plain, flags, 0) : -ELOOP;
	}
	if (fd == -ELOOP)
		return resolve_links(root, path, flags, arena, ret_path, ret_fd);
	if (fd < 0)
		return fd;
	*ret_path = graft_arena_strdup(arena, plain);
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

/* Reads until `size` bytes are there or the file ends. */
static ssize_t read_up_to(int fd, char *bytes, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t n = read(fd, bytes + used, size - used);

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

/* procfs states size 0 for files that have content. */
static int read_unknown_size(int fd, size_t max, struct graft_arena *arena, const char **ret_bytes, size_t *ret_length)
{
	size_t capacity = 0, used = 0;
	auto_free char *bytes = NULL;
	char *copy;

	while (used == capacity) {
		ssize_t n;
		char *larger = realloc(bytes, capacity == 0 ? UNKNOWN_SIZE_CHUNK : capacity * 2);

		if (!larger)
			return -ENOMEM;
		bytes = larger;
		capacity = capacity == 0 ? UNKNOWN_SIZE_CHUNK : capacity * 2;
		n = read_up_to(fd, bytes + used, capacity - used);
		if (n < 0)
			return (int)n;
		used += (size_t)n;
		if (used > max)
			return -EFBIG;
	}
	copy = graft_arena_alloc(arena, used + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, used);
	*ret_bytes = copy;
	*ret_length = used;
	return 0;
}

/* A regular file whose state is known. */
static int read_stated(int fd, const struct stat *st, size_t max, struct graft_arena *arena, const char **ret_bytes,
		       size_t *ret_length)
{
	char *bytes;
	ssize_t n;

	if ((uintmax_t)st->st_size > max)
		return -EFBIG;
	if (st->st_size == 0)
		return read_unknown_size(fd, max, arena, ret_bytes, ret_length);
	bytes = graft_arena_alloc(arena, (size_t)st->st_size + 1);
	if (!bytes)
		return -ENOMEM;
	n = read_up_to(fd, bytes, (size_t)st->st_size);
	if (n < 0)
		return (int)n;
	*ret_bytes = bytes;
	*ret_length = (size_t)n;
	return 0;
}

int graft_read_fd(int fd, size_t max, struct graft_arena *arena, const char **ret_bytes, size_t *ret_length)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? read_stated(fd, &st, max, arena, ret_bytes, ret_length) : -EINVAL;
}

/* The very object, by way of our procfs. */
static int reopen_by_proc(const struct graft_root *root, int path_fd, int flags)
{
	char number[16];
	int fd;

	if (root->proc_fd < 0)
		return -ENOENT;
	(void)snprintf(number, sizeof(number), "%d", path_fd);
	fd = openat(root->proc_fd, number, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* QUIRK: a security module may keep us from our own procfs. */
static bool is_kept_from_procfs(int rc)
{
	return rc == -EACCES || rc == -EPERM || rc == -ENOENT;
}

int graft_root_reopen(const struct graft_root *root, int path_fd, const char *path, int flags)
{
	int fd = reopen_by_proc(root, path_fd, flags);

	return is_kept_from_procfs(fd) ? graft_root_openat(root, path, flags) : fd;
}

/* SECURITY: in an image, opening a device node already has effects (/dev/watchdog). Look before. */
static int read_untrusted(const struct graft_root *root, const char *path, int flags, size_t max,
			  struct graft_arena *arena, const char **ret_bytes, size_t *ret_length)
{
	auto_close int path_fd = graft_root_openat(root, path, O_PATH);
	auto_close int fd = -1;
	struct stat st;
	int rc;

	if (path_fd < 0)
		return path_fd;
	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (root->texts && (uintmax_t)st.st_size <= max && graft_texts_find(root->texts, &st, ret_bytes, ret_length)) {
		*ret_bytes = graft_arena_memdup(arena, *ret_bytes, *ret_length + 1);
		return *ret_bytes ? 0 : -ENOMEM;
	}
	fd = reopen_by_proc(root, path_fd, flags);
	if (is_kept_from_procfs(fd)) {
		/* By its name it may be another one by now. */
		fd = graft_root_openat(root, path, flags);
		return fd < 0 ? fd : graft_read_fd(fd, max, arena, ret_bytes, ret_length);
	}
	if (fd < 0)
		return fd;
	rc = read_stated(fd, &st, max, arena, ret_bytes, ret_length);
	if (rc == 0 && root->texts)
		rc = graft_texts_remember(root->texts, &st, *ret_bytes, *ret_length);
	return rc;
}

int graft_root_read(const struct graft_root *root, const char *path, size_t max, struct graft_arena *arena,
		    const char **ret_bytes, size_t *ret_length)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	auto_close int fd = -1;
	int rc;

	if (root->own_path) {
		fd = graft_root_openat(root, path, flags);
		rc = fd < 0 ? fd : graft_read_fd(fd, max, arena, ret_bytes, ret_length);
	} else {
		rc = read_untrusted(root, path, flags, max, arena, ret_bytes, ret_length);
	}
	return rc == -ENXIO ? -EINVAL : rc; /* ENXIO: a socket */
}

/* Copies `path` without the slashes at its end; the mode of the last component must reach it. */
static int without_slashes(const char *path, char *text, size_t size)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	if (length >= size)
		return -ENAMETOOLONG;
	memcpy(text, path, length);
	text[length] = '\0';
	return 0;
}

/* The directory that the last component of a plain path lies in; cuts that off. False when there is none left. */
static bool cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (path[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

/*
 * Walks from the last directory of the path that is there, where no link leads to it. What is to be made mostly lies deep in what is there; a
 * walk from the root would open all of that. -ELOOP: it cannot be told in one call where that is.
 */
static int make_below(const struct graft_root *root, const char *path, const struct graft_walk_maker *maker,
		      struct graft_walk *walk)
{
	char above[PATH_MAX];
	int fd = -ENOENT;

	memcpy(above, path, strlen(path) + 1);
	while (fd == -ENOENT && cut_last(above))
		fd = open_plain(root, above, O_DIRECTORY, 0);
	if (fd < 0)
		return -ELOOP;
	return graft_walk_from(walk, root, fd, above, path + strlen(above), true, maker);
}

static int make_by_hand(const struct graft_root *root, const char *path, const struct graft_walk_maker *maker,
			struct stat *ret_stat)
{
	auto_walk struct graft_walk walk;
	char text[PATH_MAX];
	int rc;

	walk.parent_fd = walk.root_fd = walk.fd = -1;
	rc = without_slashes(path, text, sizeof(text));
	if (rc < 0)
		return rc;
	rc = is_plain(text) ? make_below(root, text, maker, &walk) : -ELOOP;
	if (rc == -ELOOP) {
		graft_walk_close(&walk);
		rc = graft_walk_path(&walk, root, text, true, maker);
	}
	if (rc < 0)
		return rc;
	*ret_stat = walk.stat;
	return TAKE_FD(walk.fd);
}

static int find_or_make(const struct graft_root *root, const char *path, const struct graft_walk_maker *maker,
			int *ret_fd)
{
	/* Something else than a directory that is wanted is -ENOTDIR at once. */
	auto_close int fd = graft_root_openat(root, path, O_PATH | (maker->directory ? O_DIRECTORY : 0));
	struct stat st = { .st_mode = maker->directory ? S_IFDIR : 0 };

	if (fd == -ENOENT)
		fd = make_by_hand(root, path, maker, &st);
	else if (fd >= 0 && !maker->directory && fstat(fd, &st) < 0)
		return -errno;
	if (fd < 0)
		return fd;
	if (maker->directory && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (!maker->directory && S_ISDIR(st.st_mode))
		return -EISDIR;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int graft_root_mkdir(const struct graft_root *root, const char *path, mode_t mode, const struct graft_root_watch *watch,
		     int *ret_fd)
{
	struct graft_walk_maker maker = { .directory = true, .mode = mode, .watch = watch };

	return find_or_make(root, path, &maker, ret_fd);
}

int graft_root_mountpoint(const struct graft_root *root, const char *path, bool directory, mode_t mode,
			  const struct graft_root_watch *watch, int *ret_fd)
{
	struct graft_walk_maker maker = { .directory = directory, .mode = mode, .watch = watch };

	return find_or_make(root, path, &maker, ret_fd);
}

int graft_root_parent(const struct graft_root *root, const char *path, int *ret_parent_fd, char *name)
{
	char text[PATH_MAX];
	const char *last;
	char *slash;
	int rc = without_slashes(path, text, sizeof(text));

	if (rc < 0)
		return rc;
	slash = strrchr(text, '/');
	last = slash ? slash + 1 : text;
	if (last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
		return -EINVAL;
	if (strlen(last) > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, last, strlen(last) + 1);
	if (slash)
		*(slash == text ? slash + 1 : slash) = '\0';
	rc = graft_root_openat(root, slash ? text : "/", O_PATH | O_DIRECTORY);
	if (rc < 0)
		return rc;
	*ret_parent_fd = rc;
	return 0;
}
