/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_mounts: directories of the host that a container gets, and what it gets in them.
 *
 * SECURITY: a low-level runtime makes mount points, nodes and the working directory wherever links
 * of the image lead. In a directory of the host, it would make them on the host. So Graft mounts
 * such directories itself, when the low-level runtime has made all of these
 * (docs/decisions/0024-image-reader.md). In a user namespace, it can make only what the container's
 * own root may make, and our hook may not have the right to look at the directory: there the
 * low-level runtime mounts it.
 */
#ifndef GRAFT_START_HOST_MOUNTS_H
#define GRAFT_START_HOST_MOUNTS_H

#include "formats/cdi/cdi.h"
#include "plan/plan.h"
#include "start/start.h"

/*
 * Moves bind mounts of directories, and of what is mounted in one of them, from `edits` to
 * create->edits. A directory stays in `edits`, for the low-level runtime, if config.json
 * masks it, or if it has an option other than those of GRAFT_MOUNT_*, of access times and of
 * private bind mounts. -1: GRAFT_NO_MEMORY; GRAFT_UNSUPPORTED: what is mounted in a directory has
 * such an option, or is neither a directory nor a file or socket.
 */
int graft_start_take_host_directories(struct graft_start *create, struct graft_cdi_edits *edits,
				      struct graft_error *err);

/* Adds an edit to create->edits. Borrows its strings. -1: GRAFT_NO_MEMORY. */
int graft_start_add_edit(struct graft_start *create, const struct graft_edit *edit, struct graft_error *err);
/*
 * Adds the plan's edits to create->edits, and logs what it refuses. Borrows its strings. -1:
 * GRAFT_NO_MEMORY.
 */
int graft_start_add_plan(struct graft_start *create, const struct graft_plan *plan, struct graft_error *err);

/*
 * Returns the plan with create->edits, which are then no more; the plan itself if there are none
 * and it mounts no directory. A bind mount of config.json at the place of a directory is removed,
 * as a mount of edits replaces it. NULL with GRAFT_NO_MEMORY; GRAFT_INVALID: config.json mounts
 * something in a directory, which would be hidden.
 */
const struct graft_plan *graft_start_join_edits(struct graft_start *create, const struct graft_plan *plan,
						struct graft_error *err);

#endif
