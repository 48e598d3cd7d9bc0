/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root: paths below a directory of the host, as file descriptors (base/beneath.h). Such a root is
 * trusted: objects below it may be opened by name, and our own procfs is used to resolve paths.
 *
 * SECURITY: the root file system of an image is never one of these, but a struct graft_image_root
 * (base/image_root.h). Neither type can be converted to the other.
 */
#ifndef GRAFT_BASE_ROOT_H
#define GRAFT_BASE_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/beneath.h"
#include "base/error.h"
#include "base/read.h"

struct graft_root {
	int fd;          /* O_PATH|O_DIRECTORY|O_CLOEXEC; owned; -1 when closed */
	bool no_openat2; /* resolve by hand */
	char *own_path;  /* the root's path according to our own procfs; owned; NULL if unknown */
};
#define GRAFT_ROOT_INIT                                         \
	{                                                       \
		.fd = -1, .no_openat2 = false, .own_path = NULL \
	}

/*
 * Opens a directory of the host as a root. A link in last place is followed, since the path is the
 * caller's own.
 */
int graft_root_open(struct graft_root *ret_root, const char *host_directory, struct graft_error *err);
/*
 * Makes a root of an O_PATH descriptor of a directory of a kernel file system (cgroupfs) that the
 * caller has opened. Takes ownership of it.
 */
void graft_root_take(struct graft_root *ret_root, int take_fd);
/* Closes the root. Closing it twice is allowed. */
void graft_root_close(struct graft_root *root);
#define auto_root __attribute__((cleanup(graft_root_close)))

/*
 * Opens `path` below the root with open(2) flags. O_CLOEXEC is added, O_NOFOLLOW applies to the
 * last component, O_CREAT is refused. Returns the descriptor or -errno. Never blocks on a FIFO if
 * O_PATH or O_NONBLOCK is given.
 */
int graft_root_openat(const struct graft_root *root, const char *path, int flags);

/*
 * Returns whether something exists at `path` (links are followed below the root); with O_DIRECTORY
 * in `flags`, whether it is a directory.
 */
bool graft_root_has(const struct graft_root *root, const char *path, int flags);

/* fstat(2) of the object at `path` (links are followed below the root). Returns 0 or -errno. */
int graft_root_stat(const struct graft_root *root, const char *path, struct stat *ret_stat);

/*
 * Resolves all links of `path` below the root. The last component must exist. *ret_path is the
 * canonical path as seen from the root ("/run/x" for "/var/run/x"), in `arena`. `ret_fd`, if not
 * NULL, receives an O_PATH descriptor of the object. Returns 0 or -errno.
 */
int graft_root_resolve(const struct graft_root *root, const char *path, struct graft_arena *arena,
		       const char **ret_path, int *ret_fd);
/* The same for a directory. Anything else fails with -ENOTDIR. */
int graft_root_resolve_directory(const struct graft_root *root, const char *path, struct graft_arena *arena,
				 const char **ret_path, int *ret_fd);

/*
 * Reads a whole regular file, opened non-blocking. Files of procfs that report size 0 are read to
 * their end. The bytes are in `arena`, followed by a NUL that is not included in the length.
 * Returns 0 or -errno: -EINVAL unless it is a regular file, -EFBIG if it is larger than `max`.
 */
int graft_root_read(const struct graft_root *root, const char *path, size_t max, struct graft_arena *arena,
		    const char **ret_bytes, size_t *ret_length);
/*
 * The same for a path that other users choose or may replace: only a regular file is opened at all.
 * Opening a device node (/dev/watchdog) would already have an effect.
 */
int graft_root_read_foreign(const struct graft_root *root, const char *path, size_t max, struct graft_arena *arena,
			    const char **ret_bytes, size_t *ret_length);

/*
 * Creates the directory `path` and its missing parents (parents with mode 0755, the last one with
 * `mode`, not masked by umask), each by mkdirat(2) in its parent's descriptor. Dangling links on
 * the way are followed by hand, below the root. *ret_fd is an O_PATH descriptor of the directory.
 * Returns 0 or -errno: -ENOTDIR if something else exists there. `watch` may be NULL.
 */
int graft_root_mkdir(const struct graft_root *root, const char *path, mode_t mode, const struct graft_root_watch *watch,
		     int *ret_fd);

/*
 * Splits `path` into an O_PATH descriptor of its parent directory (links are followed) and its last
 * component, which is copied to `name` (NAME_MAX + 1 bytes). The last component need not exist and
 * is not followed. Returns 0 or -errno.
 */
int graft_root_parent(const struct graft_root *root, const char *path, int *ret_parent_fd, char *name);

#endif
