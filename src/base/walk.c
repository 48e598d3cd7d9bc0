/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: resolves a path below a root by hand. Input: the root's descriptor and a path that may come
 * from an image. Output: descriptors of the object and of its parent. Does not know what they are
 * used for.
 */
#include "base/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

#define MAX_LINKS   40u  /* like the kernel */
#define MAX_STEPS   512u /* components opened; limits the cost of links full of ".." (5 us each) */
#define PARENT_MODE 0755

void graft_walk_close(struct graft_walk *walk)
{
	if (walk->parent_fd >= 0 && walk->parent_fd != walk->root_fd)
		(void)close(walk->parent_fd);
	if (walk->fd >= 0)
		(void)close(walk->fd);
	walk->parent_fd = -1;
	walk->fd = -1;
}

static void go_to(struct graft_walk *walk, int take_fd)
{
	if (walk->parent_fd != walk->root_fd)
		(void)close(walk->parent_fd);
	walk->parent_fd = take_fd;
}

static void go_to_walk_root(struct graft_walk *walk)
{
	go_to(walk, walk->root_fd);
	walk->path[0] = '\0';
}

/* Prepends `text` to the path that is still to be walked. `rest` points into walk->pending. */
static int push_pending(struct graft_walk *walk, const char *text, const char *rest)
{
	size_t text_length = strlen(text);
	size_t rest_length = strlen(rest);

	if (text_length + rest_length >= sizeof(walk->pending))
		return -ENAMETOOLONG;
	memmove(walk->pending + text_length, rest, rest_length + 1);
	memcpy(walk->pending, text, text_length);
	return 0;
}

/*
 * Takes the next component off `pending`. Returns 1, or 0 at the end. *ret_last: nothing follows,
 * not even a slash.
 */
static int next_component(struct graft_walk *walk, bool *ret_last)
{
	const char *start = walk->pending + strspn(walk->pending, "/");
	size_t length = strcspn(start, "/");

	if (length == 0)
		return 0;
	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(walk->name, start, length);
	walk->name[length] = '\0';
	*ret_last = start[length] == '\0';
	memmove(walk->pending, start + length, strlen(start + length) + 1);
	return 1;
}

/* Never looks up ".." in the file system; walks to the parent from the root again instead. */
static int go_up(struct graft_walk *walk)
{
	char *slash = strrchr(walk->path, '/');
	char above[PATH_MAX];

	if (!slash)
		return 0;
	*slash = '\0';
	memcpy(above, walk->path, (size_t)(slash - walk->path) + 1);
	go_to_walk_root(walk);
	/*
	 * The slash allows an empty rest and requires the last component of `above` to be a
	 * directory.
	 */
	if (push_pending(walk, "/", walk->pending) < 0)
		return -ENAMETOOLONG;
	return push_pending(walk, above, walk->pending);
}

/*
 * QUIRK: procfs has links that refer to an object instead of a path (exe, cwd, root, fd/N, ns/N,
 * map_files/N). Reading them gives a path in some other root, or "type:[inode]". They are
 * recognised by their mode (fd, map_files), or by a size of 0 together with a target that is not a
 * plain relative name (as those of self, mounts and net are).
 */
static bool is_magic_link(int link_fd, const struct stat *st, const char *text)
{
	struct statfs fs;

	if (fstatfs(link_fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return false;
	if ((st->st_mode & 0777) != 0777)
		return true;
	return st->st_size == 0 && (text[0] == '/' || text[0] == '(' || strchr(text, ':'));
}

static int follow_link(struct graft_walk *walk, int link_fd, const struct stat *st)
{
	char text[PATH_MAX];
	ssize_t length;

	if (++walk->n_links > MAX_LINKS)
		return -ELOOP;
	length = readlinkat(link_fd, "", text, sizeof(text));
	if (length < 0)
		return -errno;
	if ((size_t)length >= sizeof(text))
		return -ENAMETOOLONG;
	text[length] = '\0';
	if (length == 0)
		return -ENOENT;
	if (is_magic_link(link_fd, st, text))
		return -ELOOP;
	if (text[0] == '/')
		go_to_walk_root(walk);
	return push_pending(walk, text, walk->pending);
}

/* The umask is not applied: the caller decides the mode. */
static int make_object(struct graft_walk *walk, bool directory, mode_t mode)
{
	mode_t mask = umask(0);
	int rc = 0;

	if (directory)
		rc = mkdirat(walk->parent_fd, walk->name, mode);
	else
		rc = walk->fd = openat(walk->parent_fd, walk->name,
				       O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (rc < 0)
		rc = -errno;
	(void)umask(mask);
	return rc < 0 ? rc : 0;
}

/*
 * Creates what is missing. Also returns 0 if another process was faster; the watch is not called
 * then.
 */
static int make_missing(struct graft_walk *walk, bool last, const struct graft_walk_maker *maker)
{
	bool directory = !last || maker->directory;
	int rc = maker->watch && maker->watch->may_create
		     ? maker->watch->may_create(maker->watch->arg, walk->parent_fd, walk->n_links > 0)
		     : 0;

	if (rc == 0)
		rc = make_object(walk, directory, last ? maker->mode : PARENT_MODE);
	if (rc == -EEXIST)
		return 0;
	if (rc < 0 || !maker->watch || !maker->watch->created)
		return rc;
	rc = maker->watch->created(maker->watch->arg, walk->parent_fd, walk->name, directory);
	if (rc < 0)
		(void)unlinkat(walk->parent_fd, walk->name, directory ? AT_REMOVEDIR : 0);
	return rc;
}

/*
 * Opens walk->name in walk->parent_fd as walk->fd. If it is missing and there is a maker, creates
 * it.
 */
static int open_component(struct graft_walk *walk, bool last, const struct graft_walk_maker *maker)
{
	int rc = 0;

	while (walk->fd < 0) {
		if (++walk->n_steps > MAX_STEPS)
			return -ELOOP;
		walk->fd = openat(walk->parent_fd, walk->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (walk->fd >= 0)
			break;
		if (errno != ENOENT || !maker)
			return -errno;
		rc = make_missing(walk, last, maker);
		if (rc < 0)
			return rc;
	}
	return fstat(walk->fd, &walk->stat) < 0 ? -errno : 0;
}

/* Ends a path that stops at a directory without naming it ("/", "a/", "a/.."). */
static int end_at_directory(struct graft_walk *walk)
{
	memcpy(walk->name, ".", 2);
	walk->fd = openat(walk->parent_fd, ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (walk->fd < 0)
		return -errno;
	return fstat(walk->fd, &walk->stat) < 0 ? -errno : 0;
}

static int descend(struct graft_walk *walk)
{
	size_t path_length = strlen(walk->path);
	size_t name_length = strlen(walk->name);

	if (!S_ISDIR(walk->stat.st_mode))
		return -ENOTDIR;
	if (path_length + 1 + name_length >= sizeof(walk->path))
		return -ENAMETOOLONG;
	walk->path[path_length] = '/';
	memcpy(walk->path + path_length + 1, walk->name, name_length + 1);
	go_to(walk, TAKE_FD(walk->fd));
	return 0;
}

/* Walks one component. Returns 1 to continue, 0 at the end of the walk, or -errno. */
static int step_walk(struct graft_walk *walk, bool follow, const struct graft_walk_maker *maker)
{
	bool last = false;
	int rc = next_component(walk, &last);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return end_at_directory(walk);
	if (strcmp(walk->name, ".") == 0)
		return 1;
	if (strcmp(walk->name, "..") == 0) {
		rc = go_up(walk);
		return rc < 0 ? rc : 1;
	}
	rc = open_component(walk, last, maker);
	if (rc < 0)
		return rc;
	if (S_ISLNK(walk->stat.st_mode) && (!last || follow)) {
		auto_close int link_fd = TAKE_FD(walk->fd);

		rc = follow_link(walk, link_fd, &walk->stat);
		return rc < 0 ? rc : 1;
	}
	if (last)
		return 0;
	rc = descend(walk);
	return rc < 0 ? rc : 1;
}

static void begin_walk(struct graft_walk *walk, const struct graft_beneath *root, int parent_fd)
{
	walk->root_fd = root->fd;
	walk->parent_fd = parent_fd;
	walk->fd = -1;
	walk->n_links = 0;
	walk->n_steps = 0;
	walk->path[0] = '\0';
	walk->pending[0] = '\0';
}

static int go(struct graft_walk *walk, const char *path, bool follow, const struct graft_walk_maker *maker)
{
	int rc = 1;

	if (path[0] == '\0')
		return -ENOENT;
	if (push_pending(walk, path, "") < 0)
		return -ENAMETOOLONG;
	while (rc == 1)
		rc = step_walk(walk, follow, maker);
	return rc;
}

int graft_walk_path(struct graft_walk *walk, const struct graft_beneath *root, const char *path, bool follow,
		    const struct graft_walk_maker *maker)
{
	begin_walk(walk, root, root->fd);
	return go(walk, path, follow, maker);
}

int graft_walk_from(struct graft_walk *walk, const struct graft_beneath *root, int take_fd, const char *path,
		    const char *rest, bool follow, const struct graft_walk_maker *maker)
{
	size_t length = strlen(path);

	begin_walk(walk, root, take_fd);
	if (length >= sizeof(walk->path))
		return -ENAMETOOLONG;
	if (length > 1)
		memcpy(walk->path, path, length + 1);
	return go(walk, rest, follow, maker);
}
