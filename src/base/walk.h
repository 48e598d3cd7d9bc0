/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: walks a path below a root component by component, opening each with O_NOFOLLOW in its
 * parent's descriptor. Private to base/beneath.c: it is the fallback for kernels without
 * openat2(2), and the only way to create things (openat2 cannot).
 *
 * Links are read and followed by hand. An absolute link restarts at the root. ".." is removed from
 * the path walked so far, which is then walked again from the root; it is never looked up in the
 * file system, so nothing that is moved in the meantime can lead outside.
 */
#ifndef GRAFT_BASE_WALK_H
#define GRAFT_BASE_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/beneath.h"

/* What to do with components that do not exist. */
struct graft_walk_maker {
	bool directory; /* the last component: a directory, else a regular file */
	mode_t mode;    /* of the last component; missing parents get 0755 */
	const struct graft_root_watch *watch;
};

struct graft_walk {
	int parent_fd;           /* the directory that contains `name`; owned unless it is root_fd */
	int fd;                  /* O_PATH descriptor of the object; owned */
	struct stat stat;        /* of the object */
	char name[NAME_MAX + 1]; /* "." if the path ends at a directory by "/", "." or ".." */
	char path[PATH_MAX];     /* canonical, from the root, without `name`: "" or "/usr/lib" */
	char pending[PATH_MAX];  /* still to be walked */
	int root_fd;
	unsigned int n_links, n_steps;
};

/*
 * Walks `path`. If its last component is a link, `follow` decides whether to follow it. `maker` may
 * be NULL. Returns 0 or -errno; the walk must be closed either way.
 */
int graft_walk_path(struct graft_walk *walk, const struct graft_beneath *root, const char *path, bool follow,
		    const struct graft_walk_maker *maker);
/*
 * The same, starting from a directory that is already known: `take_fd` is the directory at `path`,
 * which is canonical ("/" is the root), and `rest` is the path still to be walked.
 */
int graft_walk_from(struct graft_walk *walk, const struct graft_beneath *root, int take_fd, const char *path,
		    const char *rest, bool follow, const struct graft_walk_maker *maker);
/* Closes the descriptors that the walk owns. */
void graft_walk_close(struct graft_walk *walk);
#define auto_walk __attribute__((cleanup(graft_walk_close)))

#endif
