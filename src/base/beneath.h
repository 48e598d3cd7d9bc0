/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beneath: paths below a directory, as file descriptors. A lookup cannot leave the directory:
 * links, absolute or relative, are resolved as if it were the root, and magic links of /proc are
 * refused. With openat2(2) (Linux 5.6) the kernel does this (RESOLVE_IN_ROOT |
 * RESOLVE_NO_MAGICLINKS). Without it, every component is opened with O_NOFOLLOW and links are
 * followed by hand, 40 at most.
 *
 * Private to the two kinds of root, base/root.h (the host's) and base/image_root.h (a container's),
 * which define what each of them allows.
 *
 * SECURITY: no path into a container is ever passed to the kernel as a whole string outside of
 * these functions.
 */
#ifndef GRAFT_BASE_BENEATH_H
#define GRAFT_BASE_BENEATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"

struct graft_beneath {
	int fd;          /* O_PATH|O_DIRECTORY; borrowed */
	bool no_openat2; /* resolve by hand */
};

/*
 * Called for each thing created below a root, in order, so that a journal can undo it. `parent_fd`
 * is borrowed. `name` is a single component.
 */
struct graft_root_watch {
	int (*created)(void *arg, int parent_fd, const char *name, bool is_directory);
	/*
	 * Called before something is created; `linked`: a link was followed to reach the directory.
	 * Returns 0, or -errno to forbid it. NULL allows everything.
	 */
	int (*may_create)(void *arg, int parent_fd, bool linked);
	void *arg;
};

/*
 * Opens `path` with open(2) flags. O_CLOEXEC is added, O_NOFOLLOW applies to the last component,
 * O_CREAT is refused. Returns the descriptor or -errno. Never blocks on a FIFO if O_PATH or
 * O_NONBLOCK is given.
 */
int graft_beneath_openat(const struct graft_beneath *root, const char *path, int flags);
/*
 * Resolves all links of `path`, whose last component must exist; see graft_root_resolve(). `flags`
 * is O_DIRECTORY or 0.
 */
int graft_beneath_resolve(const struct graft_beneath *root, const char *path, int flags, struct graft_arena *arena,
			  const char **ret_path, int *ret_fd);
/*
 * The same for a path without links, except for one in first place such as /lib. Returns -ELOOP for
 * any other.
 */
int graft_beneath_resolve_plain(const struct graft_beneath *root, const char *path, int flags,
				struct graft_arena *arena, const char **ret_path, int *ret_fd);
/* The same without openat2. */
int graft_beneath_resolve_by_hand(const struct graft_beneath *root, const char *path, int flags,
				  struct graft_arena *arena, const char **ret_path, int *ret_fd);
/*
 * Returns an O_PATH descriptor of the object at `path`, or -errno: -ELOOP if a link had to be
 * followed.
 */
int graft_beneath_look_without_links(const struct graft_beneath *root, const char *path);
/*
 * See graft_image_root_look_plain(), graft_image_root_mountpoint() (for a directory also
 * graft_root_mkdir()), graft_root_parent().
 */
int graft_beneath_look_plain(const struct graft_beneath *root, const char *path);
int graft_beneath_mountpoint(const struct graft_beneath *root, const char *path, bool directory, mode_t mode,
			     const struct graft_root_watch *watch, int *ret_fd);
int graft_beneath_parent(const struct graft_beneath *root, const char *path, int *ret_parent_fd, char *name);

#endif
