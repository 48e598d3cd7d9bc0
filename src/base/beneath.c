/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beneath: lookups below a directory. The kernel resolves paths where it can (openat2); base/walk.c
 * does so otherwise, and for everything that is created. Does not know whose directory it is: every
 * path may be hostile, and no result is a path that is opened again.
 */
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "base/walk.h"

#define RESOLVE    (GRAFT_RESOLVE_IN_ROOT | GRAFT_RESOLVE_NO_MAGICLINKS)
#define PATH_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/*
 * openat2 fails with EAGAIN if something is renamed while it resolves "..". After this many tries
 * we resort to the walk.
 */
#define MAX_RACES 32

/* Opens what a walk has found, like open(2). */
static int open_walked_file(struct graft_walk *walk, int flags)
{
	int fd;

	if (!(flags & O_PATH)) {
		/* O_NOFOLLOW: do not follow it if it has become a link since. */
		fd = openat(walk->parent_fd, walk->name, flags | O_NOFOLLOW | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if ((flags & O_DIRECTORY) && !S_ISDIR(walk->stat.st_mode))
		return -ENOTDIR;
	return TAKE_FD(walk->fd);
}

static int open_by_hand(const struct graft_beneath *root, const char *path, int flags)
{
	auto_walk struct graft_walk walk;
	int rc = graft_walk_path(&walk, root, path, !(flags & O_NOFOLLOW), NULL);

	return rc < 0 ? rc : open_walked_file(&walk, flags);
}

int graft_beneath_openat(const struct graft_beneath *root, const char *path, int flags)
{
	if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
		return -EINVAL;
	if (flags & O_PATH)
		flags &= PATH_FLAGS; /* openat2 refuses what open(2) ignores */
	for (int i = 0; !root->no_openat2 && i < MAX_RACES; i++) {
		int fd = graft_openat2(root->fd, path, (uint64_t)(flags | O_CLOEXEC), 0, RESOLVE);

		if (fd >= 0)
			return fd;
		/*
		 * EPERM may come from a seccomp filter. If it is about the file, the walk meets it
		 * too.
		 */
		if (errno == ENOSYS || errno == EPERM)
			break;
		if (errno != EAGAIN)
			return -errno;
	}
	return open_by_hand(root, path, flags);
}

int graft_beneath_resolve_by_hand(const struct graft_beneath *root, const char *path, int flags,
				  struct graft_arena *arena, const char **ret_path, int *ret_fd)
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

/*
 * Absolute, and no component is "", "." or "..". Such a path, if it has no links, is its own
 * canonical form.
 */
static bool is_plain_path(const char *path)
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

/*
 * Opens with O_PATH a path that has no links. Returns -ELOOP if that cannot be done in one call,
 * whatever the reason.
 */
static int open_plain(const struct graft_beneath *root, const char *path, int flags, uint64_t resolve)
{
	int fd;

	if (root->no_openat2 || !is_plain_path(path))
		return -ELOOP;
	fd = graft_openat2(root->fd, path, (uint64_t)(flags | O_PATH | O_CLOEXEC), 0,
			   RESOLVE | GRAFT_RESOLVE_NO_SYMLINKS | resolve);
	if (fd >= 0)
		return fd;
	return errno == ENOSYS || errno == EPERM || errno == EAGAIN ? -ELOOP : -errno;
}

/*
 * On most systems /lib, /bin and the like are links to directories below /usr, and no other links
 * occur in most paths. Replaces such a link by its target. Returns NULL if `path` does not begin
 * with a relative link. The result must be opened like any other path that may contain no link.
 */
static const char *without_top_link(const struct graft_beneath *root, const char *path, char buffer[PATH_MAX])
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

int graft_beneath_look_plain(const struct graft_beneath *root, const char *path)
{
	int fd = open_plain(root, path, 0, GRAFT_RESOLVE_NO_XDEV);

	if (fd < 0)
		return fd;
	(void)close(fd);
	return 0;
}

int graft_beneath_resolve_plain(const struct graft_beneath *root, const char *path, int flags,
				struct graft_arena *arena, const char **ret_path, int *ret_fd)
{
	char buffer[PATH_MAX];
	const char *plain = path;
	/* Most paths have no links, and opening them shows that they are already resolved. */
	auto_close int fd = open_plain(root, path, flags, 0);

	if (fd == -ELOOP) {
		plain = without_top_link(root, path, buffer);
		fd = plain ? open_plain(root, plain, flags, 0) : -ELOOP;
	}
	if (fd < 0)
		return fd;
	*ret_path = graft_arena_strdup(arena, plain);
	if (!*ret_path)
		return -ENOMEM;
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

int graft_beneath_resolve(const struct graft_beneath *root, const char *path, int flags, struct graft_arena *arena,
			  const char **ret_path, int *ret_fd)
{
	int rc = graft_beneath_resolve_plain(root, path, flags, arena, ret_path, ret_fd);

	return rc == -ELOOP ? graft_beneath_resolve_by_hand(root, path, flags, arena, ret_path, ret_fd) : rc;
}

int graft_beneath_look_without_links(const struct graft_beneath *root, const char *path)
{
	auto_walk struct graft_walk walk;
	int rc = graft_walk_path(&walk, root, path, false, NULL);

	if (rc < 0)
		return rc;
	return walk.n_links > 0 ? -ELOOP : TAKE_FD(walk.fd);
}

/*
 * Copies `path` without its trailing slashes, so that the mode of a new directory is applied to its
 * last component.
 */
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

/* Cuts the last component off a plain path. Returns false if no component is left. */
static bool cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (path[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

/*
 * Walks from the deepest directory of the path that exists, provided that no link is on the way to
 * it. What we create is mostly deep inside of what exists, and a walk from the root would open
 * every directory of that. Returns -ELOOP if the directory cannot be opened in one call.
 */
static int make_below(const struct graft_beneath *root, const char *path, const struct graft_walk_maker *maker,
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

static int make_by_hand(const struct graft_beneath *root, const char *path, const struct graft_walk_maker *maker,
			struct stat *ret_stat)
{
	auto_walk struct graft_walk walk;
	char text[PATH_MAX];
	int rc;

	walk.parent_fd = walk.root_fd = walk.fd = -1;
	rc = without_slashes(path, text, sizeof(text));
	if (rc < 0)
		return rc;
	rc = is_plain_path(text) ? make_below(root, text, maker, &walk) : -ELOOP;
	if (rc == -ELOOP) {
		graft_walk_close(&walk);
		rc = graft_walk_path(&walk, root, text, true, maker);
	}
	if (rc < 0)
		return rc;
	*ret_stat = walk.stat;
	return TAKE_FD(walk.fd);
}

int graft_beneath_mountpoint(const struct graft_beneath *root, const char *path, bool directory, mode_t mode,
			     const struct graft_root_watch *watch, int *ret_fd)
{
	const struct graft_walk_maker maker = { .directory = directory, .mode = mode, .watch = watch };
	/* If a directory is wanted, anything else fails with -ENOTDIR right here. */
	auto_close int fd = graft_beneath_openat(root, path, O_PATH | (directory ? O_DIRECTORY : 0));
	struct stat st = { .st_mode = directory ? S_IFDIR : 0 };

	if (fd == -ENOENT)
		fd = make_by_hand(root, path, &maker, &st);
	else if (fd >= 0 && !directory && fstat(fd, &st) < 0)
		return -errno;
	if (fd < 0)
		return fd;
	if (directory && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (!directory && S_ISDIR(st.st_mode))
		return -EISDIR;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int graft_beneath_parent(const struct graft_beneath *root, const char *path, int *ret_parent_fd, char *name)
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
	rc = graft_beneath_openat(root, slash ? text : "/", O_PATH | O_DIRECTORY);
	if (rc < 0)
		return rc;
	*ret_parent_fd = rc;
	return 0;
}
