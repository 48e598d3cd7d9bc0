/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_root: the root file system of a container. An attacker may have chosen every byte, name and
 * link in it. Only the following operations are possible:
 *
 *   looking    returns an O_PATH descriptor, which has no effect whatever the object is
 *   reading    of an object that is already open as O_PATH and is a regular file or a directory; nothing else is ever opened
 *   making     a directory, a mount point, a parent directory; graft_image_root_may_write() decides where
 *
 * Paths are resolved below the root (base/beneath.h). Each call checks the budget of the start;
 * once it is spent, all of them return -ETIME.
 *
 * Code that parses an image's bytes runs in a reader (image/reader.h), which has no privileges and
 * a root of its own.
 */
#ifndef GRAFT_BASE_IMAGE_ROOT_H
#define GRAFT_BASE_IMAGE_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/beneath.h"
#include "base/budget.h"

/* In a reader: files that it has read and may be asked about again. */
struct graft_image_kept {
	struct graft_arena *arena;
	struct graft_image_file {
		const char *path, *text;
		size_t length;
	} * files;
	size_t n_files;
};

struct graft_image_root {
	int fd;                 /* O_PATH|O_DIRECTORY|O_CLOEXEC; owned; -1 when closed */
	int proc_fd;            /* our procfs, O_PATH; owned; -1 if unavailable */
	int self_fd;            /* in a reader: a mount of its own /proc/self/fd alone; owned; or -1 */
	int mount_ns_fd;        /* the mount namespace of the root, if it is not ours; borrowed; or -1 */
	uint64_t mount_id;      /* of the root's own mount */
	dev_t own_dev;          /* of a tmpfs of the container's own at its /dev; 0: none, or unknown */
	uint64_t own_mounts[4]; /* ids of mounts that we made in it, see graft_image_root_add_mount() */
	size_t n_own_mounts;
	bool no_openat2;               /* resolve by hand */
	bool no_nodes;                 /* its mounts are nodev copies: device nodes cannot be opened through them */
	struct graft_budget *budget;   /* borrowed; never NULL */
	struct graft_image_kept *kept; /* borrowed; or NULL */
};
#define GRAFT_IMAGE_ROOT_INIT                                             \
	{                                                                 \
		.fd = -1, .proc_fd = -1, .self_fd = -1, .mount_ns_fd = -1 \
	}

/*
 * Initialises a root from an O_PATH directory descriptor and takes ownership of that. Call it in a
 * mount namespace whose /proc is ours. The budget must outlive the root.
 */
void graft_image_root_take(struct graft_image_root *ret_root, int take_fd, struct graft_budget *budget);
/* Closes the descriptors that the root owns. Closing it twice is allowed. */
void graft_image_root_close(struct graft_image_root *root);
#define auto_image_root __attribute__((cleanup(graft_image_root_close)))

/*
 * Returns the id of the mount of a descriptor, unique on this machine for the lifetime of the
 * mount, or 0 if the kernel does not report it.
 */
uint64_t graft_image_root_mount_id(const struct graft_image_root *root, int fd);
/*
 * Returns whether both descriptors are known to be of the same object, reached by the same mount.
 */
bool graft_image_root_is_same(const struct graft_image_root *root, int a_fd, int b_fd);

/* ---- looking; all paths are absolute paths of the image ---- */

/*
 * Returns an O_PATH descriptor of the object at `path`, or -errno. `flags`: O_NOFOLLOW (for the
 * last component), O_DIRECTORY.
 */
int graft_image_root_look(const struct graft_image_root *root, const char *path, int flags);
/*
 * Returns whether something exists at `path` (links are followed); with O_DIRECTORY in `flags`,
 * whether it is a directory.
 */
bool graft_image_root_has(const struct graft_image_root *root, const char *path, int flags);
/* fstat(2) of the object at `path` (links are followed). Returns 0 or -errno. */
int graft_image_root_stat(const struct graft_image_root *root, const char *path, struct stat *ret_stat);
/*
 * Resolves all links of `path`, whose last component must exist. *ret_path is the canonical path as
 * seen from the root ("/run/x" for "/var/run/x"), in `arena`. `ret_fd`, if not NULL, receives an
 * O_PATH descriptor of the object. Returns 0 or -errno.
 */
int graft_image_root_resolve(const struct graft_image_root *root, const char *path, struct graft_arena *arena,
			     const char **ret_path, int *ret_fd);
/*
 * Checks with a single call whether `path` is canonical: absolute, without ".", ".." and doubled or
 * trailing slashes, and no component is a link or a mount point.
 *
 * Returns 0 if it is; the object is on the root's own mount then. Returns -ENOENT or -ENOTDIR if it
 * is as far as it exists. On any other error, including -ELOOP and -EXDEV, use
 * graft_image_root_resolve().
 */
int graft_image_root_look_plain(const struct graft_image_root *root, const char *path);

/* ---- reading ---- */

/*
 * Opens for reading the object of `path_fd`, an O_PATH descriptor of what is at `path`. Returns the
 * descriptor or -errno: -EINVAL unless it is a regular file or a directory, -EACCES if exactly this
 * object cannot be opened safely. *ret_stat, which may be NULL, describes the object of `path_fd`.
 */
int graft_image_root_open(const struct graft_image_root *root, int path_fd, const char *path, struct stat *ret_stat);
/* Reads a whole regular file of at most `max` bytes, like graft_read_fd(). Returns 0 or -errno. */
int graft_image_root_read(const struct graft_image_root *root, const char *path, size_t max, struct graft_arena *arena,
			  const char **ret_bytes, size_t *ret_length);
/* Lists the names in a directory, like graft_list_names(). Returns 0 or -errno. */
int graft_image_root_list(const struct graft_image_root *root, const char *path, size_t max, struct graft_arena *arena,
			  const char ***ret_names, size_t *ret_n, bool *ret_more);

/* ---- making ---- */

/* What is going to be created in a directory. */
enum graft_image_change {
	GRAFT_IMAGE_CONTENT,    /* a permanent file, link or directory; also a removal */
	GRAFT_IMAGE_MOUNTPOINT, /* something empty, to be mounted over */
};

/*
 * Returns whether the directory `fd`, found at `path`, may be changed: 0 or -EXDEV. Changes are
 * allowed on the root's own mount. Other mounts may be volumes of the host. They may be changed
 * only if no link of the image led to them: any of them for mount points, but for content only the
 * container's own tmpfs at /dev.
 */
int graft_image_root_may_write(const struct graft_image_root *root, int fd, const char *path,
			       enum graft_image_change change);
/*
 * Registers a mount that we made, empty, below the root. Content may be written there from now on.
 */
void graft_image_root_add_mount(struct graft_image_root *root, int mount_fd);
/* graft_image_root_may_write() for callers that know whether a link was followed. */
int graft_image_root_may_write_at(const struct graft_image_root *root, int fd, bool linked,
				  enum graft_image_change change);

/*
 * Creates the directory `path` and its missing parents (parents with mode 0755, the last one with
 * `mode`, not masked by umask), each by mkdirat(2) in its parent's descriptor. `change` is their
 * purpose. Dangling links on the way are followed by hand, below the root. *ret_fd is an O_PATH
 * descriptor of the directory. Returns 0 or -errno: -ENOTDIR if something else exists there; for
 * -EXDEV see graft_image_root_may_write(). `watch` may be NULL.
 */
int graft_image_root_mkdir(const struct graft_image_root *root, const char *path, mode_t mode,
			   enum graft_image_change change, const struct graft_root_watch *watch, int *ret_fd);
/*
 * Finds or creates a mount point. Uses what is at `path` (links are followed below the root) if it
 * is of the right kind: a directory, or anything else. Otherwise creates an empty directory or
 * regular file (O_CREAT|O_EXCL|O_NOFOLLOW, `mode`) and its missing parents. Existing objects are
 * only opened with O_PATH.
 *
 * *ret_fd is an O_PATH descriptor; for a new file it is a read-only one, so that no other file can
 * have taken its name in the meantime. Returns 0 or -errno: -EISDIR or -ENOTDIR if an object of the
 * wrong kind exists. `watch` may be NULL.
 */
int graft_image_root_mountpoint(const struct graft_image_root *root, const char *path, bool directory, mode_t mode,
				const struct graft_root_watch *watch, int *ret_fd);
/*
 * Splits `path` into an O_PATH descriptor of its parent directory (links are followed) and its last
 * component, which is copied to `name` (NAME_MAX + 1 bytes). The last component need not exist and
 * is not followed. Returns 0 or -errno.
 */
int graft_image_root_parent(const struct graft_image_root *root, const char *path, int *ret_parent_fd, char *name);

#endif
