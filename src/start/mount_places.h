/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_places: where the mounts of a container will be, before the low-level runtime makes them.
 * Each is looked up in what the earlier ones leave visible, as the runtime will see it.
 */
#ifndef GRAFT_START_MOUNT_PLACES_H
#define GRAFT_START_MOUNT_PLACES_H

#include "base/image_root.h"
#include "start/start.h"

struct graft_mount_place {
	const char *path;      /* in the container; clean */
	const char *given;     /* as the runtime gets it; it resolves ".." after links */
	const char *source;    /* what a bind mount shows there; NULL: its links are not examined */
	const char *directory; /* of the host, if we give the container one; or NULL */
	const char *at;        /* where links lead `path`; NULL: this cannot be determined */
	const struct graft_mount_place
	    *entered;                          /* a directory in which links have something made on the way; or NULL */
	const struct graft_mount_place *below; /* the last earlier mount that covers `at`; or NULL */
	bool ours, read_only;
	bool replaced;               /* by one of ours at the same destination */
	bool sorted;                 /* by path at its depth; such ones are added last */
	bool copies;                 /* a tmpfs that gets what the image has there */
	bool plain;                  /* no link of the image is on the way */
	size_t depth, order, length; /* of `path`; as given; of `at` */
};

struct graft_mount_places {
	struct graft_mount_place *items;
	size_t n;
};

/* Adds a place, and cleans its path; NULL is "/". False: no memory. */
bool graft_mount_places_add(struct graft_mount_places *places, const struct graft_mount_place *given,
			    struct graft_arena *arena);
/* Adds the mounts of config.json. False: no memory. */
bool graft_mount_places_add_spec(struct graft_mount_places *places, const struct graft_start *create);
/* Sorts them like config.json (apply/oci/oci_mounts.c), and finds where each will be. */
void graft_mount_places_find(struct graft_mount_places *places, const struct graft_image_root *root,
			     struct graft_arena *arena);
/*
 * What `path`, which is clean or has dots, will resolve to once these mounts are made. `places`
 * NULL: they are not known, and only what the image has in /dev, /proc and /sys will be covered.
 * Missing components will be created where their parents and the links on the way point to. NULL:
 * it resolves to nothing, or this cannot be determined. *ret_entered, unless NULL: as in struct
 * graft_mount_place.
 */
const char *graft_start_find_place(const struct graft_image_root *root, const char *path,
				   const struct graft_mount_places *places, struct graft_arena *arena,
				   const struct graft_mount_place **ret_entered);
/*
 * Refuses a volume that links lead over the root, /dev, /proc or /sys, and a mount whose place
 * cannot be determined. -1: as below.
 */
int graft_mount_place_check_volume(const struct graft_mount_place *place, const struct graft_start *create,
				   struct graft_error *err);
/*
 * Fails because a place leads, or may lead, `where` it must not: "over /dev, /proc or /sys". -1:
 * GRAFT_UNSAFE, or what kept us from finding it: GRAFT_NO_MEMORY, GRAFT_TOO_BIG.
 */
int graft_mount_place_refuse(const struct graft_mount_place *place, const char *where, const struct graft_start *create,
			     struct graft_error *err);

#endif
