/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_root: looks before it opens, and checks the budget before it looks. Lookups are done by
 * base/beneath.c.
 */
#include "base/image_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/read.h"
#include "base/sys.h"

static struct graft_beneath make_image_beneath(const struct graft_image_root *root)
{
	return (struct graft_beneath){ .fd = root->fd, .no_openat2 = root->no_openat2 };
}

static int ask_budget(const struct graft_image_root *root)
{
	return graft_budget_is_spent(root->budget) ? -ETIME : 0;
}

void graft_image_root_take(struct graft_image_root *ret_root, int take_fd, struct graft_budget *budget)
{
	struct statfs fs;

	*ret_root = (struct graft_image_root)GRAFT_IMAGE_ROOT_INIT;
	ret_root->fd = take_fd;
	ret_root->budget = budget;
	ret_root->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ret_root->proc_fd >= 0 && (fstatfs(ret_root->proc_fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)) {
		(void)close(ret_root->proc_fd);
		ret_root->proc_fd = -1;
	}
	ret_root->mount_id = graft_image_root_mount_id(ret_root, take_fd);
}

void graft_image_root_close(struct graft_image_root *root)
{
	if (root->fd >= 0)
		(void)close(root->fd);
	if (root->proc_fd >= 0)
		(void)close(root->proc_fd);
	if (root->self_fd >= 0)
		(void)close(root->self_fd);
	*root = (struct graft_image_root)GRAFT_IMAGE_ROOT_INIT;
}

uint64_t graft_image_root_mount_id(const struct graft_image_root *root, int fd)
{
	return graft_mount_id(root->proc_fd, "self/fdinfo", fd);
}

bool graft_image_root_is_same(const struct graft_image_root *root, int a_fd, int b_fd)
{
	uint64_t id = graft_image_root_mount_id(root, a_fd);
	struct stat a, b;

	return id != 0 && graft_image_root_mount_id(root, b_fd) == id && fstat(a_fd, &a) == 0 && fstat(b_fd, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* ---- looking ---- */

int graft_image_root_look(const struct graft_image_root *root, const char *path, int flags)
{
	const struct graft_beneath at = make_image_beneath(root);
	int rc = ask_budget(root);

	return rc < 0 ? rc : graft_beneath_openat(&at, path, O_PATH | (flags & (O_NOFOLLOW | O_DIRECTORY)));
}

bool graft_image_root_has(const struct graft_image_root *root, const char *path, int flags)
{
	auto_close int fd = graft_image_root_look(root, path, flags);

	return fd >= 0;
}

int graft_image_root_stat(const struct graft_image_root *root, const char *path, struct stat *ret_stat)
{
	auto_close int fd = graft_image_root_look(root, path, 0);

	if (fd < 0)
		return fd;
	return fstat(fd, ret_stat) < 0 ? -errno : 0;
}

int graft_image_root_resolve(const struct graft_image_root *root, const char *path, struct graft_arena *arena,
			     const char **ret_path, int *ret_fd)
{
	const struct graft_beneath at = make_image_beneath(root);
	int rc = ask_budget(root);

	return rc < 0 ? rc : graft_beneath_resolve(&at, path, 0, arena, ret_path, ret_fd);
}

int graft_image_root_look_plain(const struct graft_image_root *root, const char *path)
{
	const struct graft_beneath at = make_image_beneath(root);
	int rc = ask_budget(root);

	return rc < 0 ? rc : graft_beneath_look_plain(&at, path);
}

/* ---- reading ---- */

/*
 * The name may refer to another object by now. That does no harm where the kernel opens no device
 * nodes.
 */
static int open_by_name(const struct graft_image_root *root, const char *path, const struct stat *looked, int flags)
{
	const struct graft_beneath at = make_image_beneath(root);
	auto_close int fd = graft_beneath_openat(&at, path, flags);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == looked->st_dev && st.st_ino == looked->st_ino ? TAKE_FD(fd) : -ESTALE;
}

/*
 * Opens exactly this object through our procfs. QUIRK: a security module may deny that; then the
 * object is opened by name, if device nodes cannot be opened.
 */
static int open_object(const struct graft_image_root *root, int path_fd, const char *path, const struct stat *looked,
		       int flags)
{
	char link[32];
	int fd;

	if (root->self_fd >= 0 || root->proc_fd >= 0) {
		(void)snprintf(link, sizeof(link), "%s%d", root->self_fd >= 0 ? "" : "self/fd/", path_fd);
		fd = openat(root->self_fd >= 0 ? root->self_fd : root->proc_fd, link, flags | O_CLOEXEC);
		if (fd >= 0 || (errno != EACCES && errno != EPERM && errno != ENOENT))
			return fd < 0 ? -errno : fd;
	}
	return root->no_nodes ? open_by_name(root, path, looked, flags) : -EACCES;
}

int graft_image_root_open(const struct graft_image_root *root, int path_fd, const char *path, struct stat *ret_stat)
{
	struct stat st;
	int rc = ask_budget(root);

	if (rc < 0)
		return rc;
	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (ret_stat)
		*ret_stat = st;
	if (S_ISDIR(st.st_mode)) {
		rc = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return rc < 0 ? -errno : rc;
	}
	/* SECURITY: opening a node of an image already has effects (/dev/watchdog). */
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return open_object(root, path_fd, path, &st, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

int graft_image_root_read(const struct graft_image_root *root, const char *path, size_t max, struct graft_arena *arena,
			  const char **ret_bytes, size_t *ret_length)
{
	auto_close int path_fd = graft_image_root_look(root, path, 0);
	auto_close int fd = path_fd < 0 ? path_fd : graft_image_root_open(root, path_fd, path, NULL);

	return fd < 0 ? fd : graft_read_fd(fd, max, arena, ret_bytes, ret_length);
}

int graft_image_root_list(const struct graft_image_root *root, const char *path, size_t max, struct graft_arena *arena,
			  const char ***ret_names, size_t *ret_n, bool *ret_more)
{
	auto_close int path_fd = graft_image_root_look(root, path, O_DIRECTORY);
	auto_close int fd = path_fd < 0 ? path_fd : graft_image_root_open(root, path_fd, path, NULL);

	*ret_names = NULL;
	*ret_n = 0;
	return fd < 0 ? fd : graft_list_names(fd, max, arena, ret_names, ret_n, ret_more);
}

/* ---- making ---- */

/* Whether `fd` is below the container's own /dev, on the mount that is there. */
static bool is_dev(const struct graft_image_root *root, int fd)
{
	auto_close int dev_fd = root->own_dev == 0
				    ? -1
				    : openat(root->fd, "dev", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t id = graft_image_root_mount_id(root, fd);
	struct stat st;

	return dev_fd >= 0 && id != 0 && graft_image_root_mount_id(root, dev_fd) == id && fstat(fd, &st) == 0 &&
	       st.st_dev == root->own_dev;
}

void graft_image_root_add_mount(struct graft_image_root *root, int mount_fd)
{
	uint64_t id = graft_image_root_mount_id(root, mount_fd);

	if (id != 0 && root->n_own_mounts < sizeof(root->own_mounts) / sizeof(root->own_mounts[0]))
		root->own_mounts[root->n_own_mounts++] = id;
}

static bool is_own_mount(const struct graft_image_root *root, int fd)
{
	uint64_t id = graft_image_root_mount_id(root, fd);
	bool own = id == root->mount_id;

	for (size_t i = 0; i < root->n_own_mounts; i++)
		own = own || id == root->own_mounts[i];
	return own && id != 0;
}

int graft_image_root_may_write_at(const struct graft_image_root *root, int fd, bool linked,
				  enum graft_image_change change)
{
	if (is_own_mount(root, fd))
		return 0;
	if (linked)
		return -EXDEV;
	return change == GRAFT_IMAGE_MOUNTPOINT || is_dev(root, fd) ? 0 : -EXDEV;
}

/* Whether `path` leads to the same object through the same mount, and no link is on the way. */
static bool is_plainly_at(const struct graft_image_root *root, const char *path, int fd)
{
	const struct graft_beneath at = make_image_beneath(root);
	auto_close int plain_fd = graft_beneath_look_without_links(&at, path);

	return plain_fd >= 0 && graft_image_root_is_same(root, fd, plain_fd);
}

int graft_image_root_may_write(const struct graft_image_root *root, int fd, const char *path,
			       enum graft_image_change change)
{
	if (graft_image_root_may_write_at(root, fd, true, change) == 0)
		return 0;
	return graft_image_root_may_write_at(root, fd, !is_plainly_at(root, path, fd), change);
}

/* The caller's watch, plus the check whether a directory may be changed. */
struct guard {
	const struct graft_image_root *root;
	const struct graft_root_watch *watch;
	enum graft_image_change change;
};

static int guard_may_create(void *arg, int parent_fd, bool linked)
{
	const struct guard *guard = arg;

	return graft_image_root_may_write_at(guard->root, parent_fd, linked, guard->change);
}

static int guard_created(void *arg, int parent_fd, const char *name, bool is_directory)
{
	const struct guard *guard = arg;

	return guard->watch ? guard->watch->created(guard->watch->arg, parent_fd, name, is_directory) : 0;
}

static int make_guarded(const struct graft_image_root *root, const char *path, bool directory, mode_t mode,
			enum graft_image_change change, const struct graft_root_watch *watch, int *ret_fd)
{
	const struct graft_beneath at = make_image_beneath(root);
	struct guard guard = { root, watch, change };
	const struct graft_root_watch own = { guard_created, guard_may_create, &guard };
	int rc = ask_budget(root);

	return rc < 0 ? rc : graft_beneath_mountpoint(&at, path, directory, mode, &own, ret_fd);
}

int graft_image_root_mkdir(const struct graft_image_root *root, const char *path, mode_t mode,
			   enum graft_image_change change, const struct graft_root_watch *watch, int *ret_fd)
{
	return make_guarded(root, path, true, mode, change, watch, ret_fd);
}

int graft_image_root_mountpoint(const struct graft_image_root *root, const char *path, bool directory, mode_t mode,
				const struct graft_root_watch *watch, int *ret_fd)
{
	return make_guarded(root, path, directory, mode, GRAFT_IMAGE_MOUNTPOINT, watch, ret_fd);
}

int graft_image_root_parent(const struct graft_image_root *root, const char *path, int *ret_parent_fd, char *name)
{
	const struct graft_beneath at = make_image_beneath(root);
	int rc = ask_budget(root);

	return rc < 0 ? rc : graft_beneath_parent(&at, path, ret_parent_fd, name);
}
