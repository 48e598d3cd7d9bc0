/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_root: the root file system of a container that is about to be created: determines which edits
 * can be made in it now, before the low-level runtime starts, and which must wait until its mounts
 * are there. Private to to_oci.
 */
#ifndef GRAFT_APPLY_OCI_OCI_ROOT_H
#define GRAFT_APPLY_OCI_OCI_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apply/namespace/target.h"
#include "apply/oci/to_oci.h"

/*
 * A path at which something is or will be mounted, as seen from the container's root with links
 * resolved.
 */
struct graft_oci_covered {
	const char *path;
	bool is_library; /* by its name; what is mounted may be a library that a loader must find */
	bool is_plain;   /* no link of the image is involved: it is as in config.json */
};

/* A directory that was looked up. */
struct graft_oci_directory {
	const char *given, *path; /* path NULL: it cannot be resolved */
	bool own_mount;           /* it is on another mount than the root */
};

struct graft_oci_root {
	struct graft_target target;
	const char *obstacle; /* why nothing can be done now; NULL: edits can be made */
	const char *bundle;   /* absolute; in the arena */
	bool owner_known;
	uid_t uid; /* of root in the container */
	gid_t gid;
	struct graft_oci_covered *covered; /* mounts of config.json */
	size_t n_covered;
	bool has_volumes; /* some mounts are not among those that every container has */
	struct graft_oci_directory *directories;
	size_t n_directories;
	const char **loader_dirs; /* from graft_oci_options; none: unknown */
	size_t n_loader_dirs;
	const char **plan_mounts; /* directories over which the whole plan mounts something */
	size_t n_plan_mounts;
	struct graft_arena *arena; /* borrowed */
};
#define GRAFT_OCI_ROOT_INIT                 \
	{                                   \
		.target = GRAFT_TARGET_INIT \
	}

/*
 * Opens and examines the root; changes nothing. A root that is missing, empty or not writable is an
 * obstacle, not a failure. Fails with GRAFT_UNSAFE (the root is the host's own) or GRAFT_NO_MEMORY.
 */
int graft_oci_root_open(struct graft_oci_root *ret_root, const char *bundle, const struct graft_oci_spec *spec,
			const struct graft_plan *plan, const struct graft_oci_options *options,
			struct graft_arena *arena, struct graft_error *err);
void graft_oci_root_close(struct graft_oci_root *root);
#define auto_oci_root __attribute__((cleanup(graft_oci_root_close)))

/* Returns why an edit cannot be made now, as text for a log; NULL if it can. */
const char *graft_oci_root_obstacle(struct graft_oci_root *root, const struct graft_edit *edit);
/*
 * Whether `path`, which is below `mount_point`, a mount of config.json, is on another mount of
 * config.json or of the plan. True also if that cannot be determined for lack of memory.
 */
bool graft_oci_root_is_covered_below(const struct graft_oci_root *root, const struct graft_oci_spec *spec,
				     const char *mount_point, const char *path);
/*
 * Whether the root has the program that the container starts, `name` as in process.args, before
 * anything is mounted in it.
 */
bool graft_oci_root_has_program(const struct graft_oci_root *root, const struct graft_oci_spec *spec, const char *name);
/*
 * Returns why a file cannot be mounted after the creation as the low-level runtime would mount it,
 * as text for people; NULL if it can. By then paths are masked or read-only, as config.json
 * specifies. `program`: the name of what the container starts, and whether the root has it.
 */
const char *graft_oci_root_obstacle_later(struct graft_oci_root *root, const struct graft_oci_spec *spec,
					  const struct graft_edit *edit, const char *program, bool has_program);
/* Makes edits that have no obstacle, all or none of them. */
int graft_oci_root_apply(struct graft_oci_root *root, const struct graft_plan *plan,
			 const struct graft_oci_options *options, struct graft_error *err);

#endif
