/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: creates files below a directory of the caller's and records them. Does not know what a
 * driver is.
 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LIST_NAME  ".graft-sim"
#define LIST_FIRST "graft-sim "
#define LIST_MAX   ((size_t)4 * 1024 * 1024)

static void fail_tree(struct sim_tree *tree, const char *what, const char *path)
{
	if (!tree->failed)
		(void)graft_fail_errno(tree->err, errno, "%s failed: %s", what, path);
	tree->failed = true;
}

void sim_tree_fail(struct sim_tree *tree, const struct graft_error *err)
{
	if (!tree->failed && tree->err)
		*tree->err = *err;
	tree->failed = true;
}

/*
 * Returns the path below the prefix, without the leading slash; NULL if nothing must be created
 * there.
 */
static const char *place(struct sim_tree *tree, const char *path, char full[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	const char *const names[] = { slash ? slash + 1 : path, NULL };

	if (tree->failed || sim_topology_is_missing(tree->topology, path, names))
		return NULL;
	if ((size_t)snprintf(full, PATH_MAX, "%s%s", tree->prefix, path) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		fail_tree(tree, "path", path);
		return NULL;
	}
	return full + strspn(full, "/");
}

static void remember(struct sim_tree *tree, const char *path)
{
	graft_buffer_string(&tree->made, path);
	graft_buffer_char(&tree->made, '\n');
}

static void make_directory(struct sim_tree *tree, const char *path, mode_t mode)
{
	if (mkdirat(tree->fd, path, mode) == 0) {
		remember(tree, path);
		if (fchmodat(tree->fd, path, mode, 0) < 0)
			fail_tree(tree, "chmod", path);
	} else if (errno != EEXIST) {
		fail_tree(tree, "mkdir", path);
	}
}

static void make_parents(struct sim_tree *tree, const char *path)
{
	char parent[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash && !tree->failed; slash = strchr(slash + 1, '/')) {
		memcpy(parent, path, (size_t)(slash - path));
		parent[slash - path] = '\0';
		make_directory(tree, parent, 0755);
	}
}

void sim_tree_directory(struct sim_tree *tree, const char *path, mode_t mode)
{
	char full[PATH_MAX];
	const char *at = place(tree, path, full);

	if (!at)
		return;
	make_parents(tree, at);
	make_directory(tree, at, mode);
}

static int write_all(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, bytes, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -1;
		bytes += written;
		n -= (size_t)written;
	}
	return 0;
}

void sim_tree_file(struct sim_tree *tree, const char *path, mode_t mode, const void *bytes, size_t n)
{
	char full[PATH_MAX];
	const char *at = place(tree, path, full);
	auto_close int fd = -1;

	if (!at)
		return;
	make_parents(tree, at);
	if (tree->failed)
		return;
	fd = openat(tree->fd, at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		fail_tree(tree, "file creation", at);
		return;
	}
	remember(tree, at);
	if (write_all(fd, bytes, n) < 0 || fchmod(fd, mode) < 0)
		fail_tree(tree, "file write", at);
}

void sim_tree_text(struct sim_tree *tree, const char *path, mode_t mode, const char *format, ...)
{
	char piece[2048];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= sizeof(piece)) {
		errno = E2BIG;
		fail_tree(tree, "text", path);
		return;
	}
	sim_tree_file(tree, path, mode, piece, (size_t)length);
}

void sim_tree_link(struct sim_tree *tree, const char *path, const char *target)
{
	char full[PATH_MAX];
	const char *at = place(tree, path, full);

	if (!at)
		return;
	make_parents(tree, at);
	if (tree->failed)
		return;
	if (symlinkat(target, tree->fd, at) < 0)
		fail_tree(tree, "symlink", at);
	else
		remember(tree, at);
}

/* Sockets need no privilege. Device nodes do, but a tree without them is still useful. */
static void make_node(struct sim_tree *tree, const char *path, mode_t mode, gid_t gid, dev_t device)
{
	char full[PATH_MAX];
	const char *at = place(tree, path, full);

	if (!at)
		return;
	make_parents(tree, at);
	if (tree->failed)
		return;
	if (mknodat(tree->fd, at, mode, device) < 0) {
		if (S_ISCHR(mode) && errno == EPERM)
			tree->nodes_refused = true;
		else
			fail_tree(tree, "mknod", at);
		return;
	}
	remember(tree, at);
	if (gid != 0 && fchownat(tree->fd, at, (uid_t)-1, gid, AT_SYMLINK_NOFOLLOW) < 0)
		fail_tree(tree, "chown", at);
	if (fchmodat(tree->fd, at, mode & 07777, 0) < 0)
		fail_tree(tree, "chmod", at);
}

void sim_tree_node(struct sim_tree *tree, const char *path, mode_t mode, uint32_t major, uint32_t minor)
{
	make_node(tree, path, S_IFCHR | mode, 0, makedev(major, minor));
}

void sim_tree_group_node(struct sim_tree *tree, const char *path, mode_t mode, gid_t gid, uint32_t major,
			 uint32_t minor)
{
	make_node(tree, path, S_IFCHR | mode, gid, makedev(major, minor));
}

void sim_tree_socket(struct sim_tree *tree, const char *path)
{
	make_node(tree, path, S_IFSOCK | 0666, 0, 0);
}

/* --- an earlier run --- */

static bool is_safe_entry(const char *entry)
{
	if (entry[0] == '\0' || entry[0] == '/')
		return false;
	for (const char *at = entry; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
			return false;
	}
	return true;
}

/* A directory stays if it contains files that are not ours. */
static int remove_entry(const struct sim_tree *tree, const char *entry)
{
	if (!is_safe_entry(entry))
		return graft_fail(tree->err, GRAFT_FORMAT, 0, "%s: unsafe entry '%s'", LIST_NAME, entry);
	if (unlinkat(tree->fd, entry, 0) == 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	if (errno == EISDIR && (unlinkat(tree->fd, entry, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY || errno == EEXIST))
		return 0;
	return graft_fail_errno(tree->err, errno, "removal failed: %s", entry);
}

/* Removes the entries in reverse order of creation. Modifies `list`. */
static int remove_listed(const struct sim_tree *tree, char *list, size_t length)
{
	while (length > 0) {
		char *line;

		list[length - 1] = '\0';
		line = memrchr(list, '\n', length - 1);
		if (!line)
			return 0; /* the first line identifies the list */
		if (line[1] != '\0' && remove_entry(tree, line + 1) < 0)
			return -1;
		length = (size_t)(line - list) + 1;
	}
	return 0;
}

static int read_list(const struct sim_tree *tree, int fd, char **ret_list, size_t *ret_length)
{
	auto_free char *list = malloc(LIST_MAX);
	size_t length = 0;
	ssize_t n = 1;

	if (!list)
		return graft_fail_memory(tree->err);
	while (n > 0 && length < LIST_MAX) {
		n = read(fd, list + length, LIST_MAX - length);
		if (n < 0)
			return graft_fail_errno(tree->err, errno, "file read error: %s", LIST_NAME);
		length += (size_t)n;
	}
	if (length == LIST_MAX || length < strlen(LIST_FIRST) || memcmp(list, LIST_FIRST, strlen(LIST_FIRST)) != 0)
		return graft_fail(tree->err, GRAFT_FORMAT, 0, "%s: not a list of graft-sim", LIST_NAME);
	*ret_list = TAKE_PTR(list);
	*ret_length = length;
	return 0;
}

static bool is_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	size_t n = 0;

	while (dir && readdir(dir))
		n++;
	return n == 2;
}

static int remove_earlier(const struct sim_tree *tree, const char *directory)
{
	auto_close int fd = openat(tree->fd, LIST_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_free char *list = NULL;
	size_t length = 0;

	if (fd < 0 && errno != ENOENT)
		return graft_fail_errno(tree->err, errno, "open failed: %s/%s", directory, LIST_NAME);
	if (fd < 0 && is_empty(tree->fd))
		return 0;
	if (fd < 0)
		return graft_fail(tree->err, GRAFT_INVALID, 0,
				  "%s is not empty and was not made by graft-sim; give a new directory", directory);
	if (read_list(tree, fd, &list, &length) < 0 || remove_listed(tree, list, length) < 0)
		return -1;
	if (unlinkat(tree->fd, LIST_NAME, 0) < 0)
		return graft_fail_errno(tree->err, errno, "removal failed: %s", LIST_NAME);
	return 0;
}

int sim_tree_open(struct sim_tree *tree, const struct sim_topology *topology, const char *directory,
		  struct graft_error *err)
{
	*tree = (struct sim_tree){ .topology = topology, .fd = -1, .prefix = "", .err = err, .failed = true };
	if (mkdir(directory, 0755) < 0 && errno != EEXIST)
		return graft_fail_errno(err, errno, "mkdir failed: %s", directory);
	tree->fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree->fd < 0)
		return graft_fail_errno(err, errno, "open failed: %s", directory);
	if (remove_earlier(tree, directory) < 0)
		return -1;
	tree->failed = false;
	return 0;
}

int sim_tree_finish(struct sim_tree *tree)
{
	struct graft_buffer list = { .max = LIST_MAX };
	bool failed;

	/* Also after a failure, so that the next run can remove what was created until then. */
	if (tree->fd >= 0 && tree->made.length > 0) {
		auto_close int fd = openat(tree->fd, LIST_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
					   0644);

		graft_buffer_printf(&list, "%s1 %s\n%s", LIST_FIRST, tree->topology->name,
				    graft_buffer_text(&tree->made));
		if (fd < 0 || graft_buffer_failed(&list) || graft_buffer_failed(&tree->made) ||
		    write_all(fd, list.bytes, list.length) < 0)
			fail_tree(tree, "file write", LIST_NAME);
	}
	graft_buffer_done(&list);
	graft_buffer_done(&tree->made);
	if (tree->fd >= 0)
		(void)close(tree->fd);
	tree->fd = -1;
	failed = tree->failed;
	tree->failed = true;
	return failed ? -1 : 0;
}
