/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: one path below a root, component by component, every one opened O_NOFOLLOW in its parent's descriptor. Private to
 * base/root.c: the fallback for kernels without openat2(2), and the only way to create things (openat2 cannot).
 *
 * Links are read and followed by hand: an absolute one restarts at the root, ".." is taken from the path walked so far and
 * walked again from the root, never asked of the file system, so nothing that is moved meanwhile leads outside.
 */
#ifndef GRAFT_BASE_WALK_H
#define GRAFT_BASE_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/root.h"

/* What to do with components that do not exist. */
struct graft_walk_maker {
	bool directory; /* the last component: a directory, else a regular file */
	mode_t mode;    /* of the last component; directories on the way get 0755 */
	const struct graft_root_watch *watch;
};

struct graft_walk {
	int parent_fd;           /* where the walk ended: directory of `name`; owned unless it is the root's own */
	int fd;                  /* O_PATH descriptor of the object; owned */
	struct stat stat;        /* of the object */
	char name[NAME_MAX + 1]; /* "." when the path ends at a directory by "/", "." or ".." */
	char path[PATH_MAX];     /* canonical, from the root, without `name`: "" or "/usr/lib" */
	char pending[PATH_MAX];  /* still to be walked */
	int root_fd;
	unsigned int n_links, n_steps;
};

/*
 * Walks. A last component that is a link is followed if `follow`. `maker` may be NULL. Returns 0 or -errno; the walk must be closed either way.
 */
int graft_walk_path(struct graft_walk *walk, const struct graft_root *root, const char *path, bool follow,
		    const struct graft_walk_maker *maker);
/*
 * The same from a directory that is known already: `take_fd` is what is at `path`, which is canonical ("/" is the root), and `rest` is what is still to be walked.
 */
int graft_walk_from(struct graft_walk *walk, const struct graft_root *root, int take_fd, const char *path,
		    const char *rest, bool follow, const struct graft_walk_maker *maker);
void graft_walk_close(struct graft_walk *walk);
#define auto_walk __attribute__((cleanup(graft_walk_close)))

#endif
