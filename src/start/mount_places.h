/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_places: where the low-level runtime will make the mounts and nodes of a container. Each is
 * looked up in what the earlier mounts leave visible, as the runtime will see it.
 */
#ifndef GRAFT_START_MOUNT_PLACES_H
#define GRAFT_START_MOUNT_PLACES_H

#include "base/image_root.h"
#include "start/start.h"

enum graft_made {
	GRAFT_MADE_MOUNT,
	GRAFT_MADE_NODE,
	GRAFT_MADE_DIRECTORY, /* process.cwd */
};

struct graft_mount_place {
	enum graft_made made;
	const char *given;     /* the path in the container, as in config.json; NULL is "/" */
	const char *source;    /* what a bind mount shows there; NULL: it has no links, or is opaque */
	const char *directory; /* of the host, if we give the container one; or NULL */
	bool ours, read_only;
	bool copies;    /* a tmpfs that gets what the image has there */
	bool opaque;    /* of a file system whose links cannot be examined before it is mounted */
	bool linked;    /* a file system of the kernel, which has links of its own */
	bool processes; /* procfs: links of processes lead anywhere */
	/* Found: */
	const char *path;                      /* clean */
	const char *at;                        /* where links lead it; NULL: this cannot be determined */
	size_t length;                         /* of `at` */
	const struct graft_mount_place *below; /* the last earlier mount that covers `at`; or NULL */
	const struct graft_mount_place
	    *entered;                           /* a directory in which links have something made on the way; or NULL */
	const struct graft_mount_place *unseen; /* an opaque mount that hides what is on the way; or NULL */
};

struct graft_mount_places {
	struct graft_mount_place *items; /* in the order in which they are made */
	size_t n;
};

/*
 * Finds where each will be. What memory or the budget of the root does not suffice for is not
 * determined.
 */
void graft_mount_places_find(struct graft_mount_places *places, const struct graft_image_root *root,
			     struct graft_arena *arena);
/* The rest of a path at or below the mount's place, from the '/' after that; "" at the place. */
const char *graft_mount_place_below(const struct graft_mount_place *mount, const char *path);
/*
 * Whether `at` is where the path of `place` says in this directory of the host: no link, which a
 * volume in it may have, leads elsewhere.
 */
bool graft_mount_place_is_straight(const struct graft_mount_place *place, const struct graft_mount_place *directory,
				   const char *at);
/*
 * What `path`, which is clean or has dots, will resolve to once these mounts are made. `places`
 * NULL: they are not known, and only what the image has in /dev, /proc and /sys will be covered.
 * Missing components will be created where their parents and the links on the way point to.
 * `place`, unless NULL, gets `entered` and `unseen`. Returns NULL if it resolves to nothing, or
 * this cannot be determined.
 */
const char *graft_start_find_place(const struct graft_image_root *root, const char *path,
				   const struct graft_mount_places *places, struct graft_arena *arena,
				   struct graft_mount_place *place);

#endif
