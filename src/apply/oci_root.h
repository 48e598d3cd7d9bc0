/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_root: the root file system of a container that is about to be created: what can be done in it now, before the low-level runtime starts, and what must wait
 * until its mounts are there. Private to to_oci.
 */
#ifndef GRAFT_APPLY_OCI_ROOT_H
#define GRAFT_APPLY_OCI_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apply/target.h"
#include "apply/to_oci.h"

/* A place where something is or will be mounted, as the container's root names it, links resolved. */
struct graft_oci_covered {
	const char *path;
	bool is_library; /* by its name; what is mounted may be one that a loader must find */
	bool is_plain;   /* no link of the image leads there: it is what config.json says */
};

/* A directory that was asked about. */
struct graft_oci_directory {
	const char *given, *path; /* path NULL: it cannot be told where it is */
	bool own_mount;           /* it lies on another mount than the root */
};

struct graft_oci_root {
	struct graft_target target;
	struct graft_root
	    view;  /* the same directory, for looking only: its paths are asked of our procfs, which is quicker */
	dev_t dev; /* of the root, and of its mount: */
	uint64_t mount_id;    /* graft_mount_id() */
	const char *obstacle; /* why nothing can be done now; NULL = it can be */
	const char *bundle;   /* absolute; in the arena */
	bool owner_known;
	uid_t uid; /* of root in the container */
	gid_t gid;
	struct graft_oci_covered *covered; /* mounts of config.json */
	size_t n_covered;
	bool has_volumes; /* some are none of those that every container has */
	struct graft_oci_directory *directories;
	size_t n_directories;
	const char **loader_dirs; /* of graft_oci_options */
	size_t n_loader_dirs;
	const char **plan_mounts; /* directories over which the whole plan mounts something */
	size_t n_plan_mounts;
	struct graft_arena *arena; /* borrowed */
};
#define GRAFT_OCI_ROOT_INIT                                          \
	{                                                            \
		.target = GRAFT_TARGET_INIT, .view = GRAFT_ROOT_INIT \
	}

/*
 * Looks; changes nothing. A root that is not there, is empty or cannot be written is an obstacle, no failure. -1: GRAFT_UNSAFE (the root is the host's own),
 * GRAFT_NO_MEMORY.
 */
int graft_oci_root_open(struct graft_oci_root *ret_root, const char *bundle, const struct graft_oci_spec *spec,
			const struct graft_plan *plan, const struct graft_oci_options *options,
			struct graft_arena *arena, struct graft_error *err);
void graft_oci_root_close(struct graft_oci_root *root);
#define auto_oci_root __attribute__((cleanup(graft_oci_root_close)))

/* Why an edit cannot be made now; NULL = it can. In words for a log. */
const char *graft_oci_root_obstacle(struct graft_oci_root *root, const struct graft_edit *edit);
/*
 * Whether `path`, which lies below `mount_point`, a mount of config.json's, is on another mount than that: one of config.json's or the plan's. What cannot be told for
 * want of memory counts as such.
 */
bool graft_oci_root_is_covered_below(const struct graft_oci_root *root, const struct graft_oci_spec *spec,
				     const char *mount_point, const char *path);
/* Makes edits that have no obstacle, all or none of them. */
int graft_oci_root_apply(struct graft_oci_root *root, const struct graft_plan *plan, const struct graft_log *log,
			 struct graft_error *err);

#endif
