/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_directories: directories of the host that a container gets (the pipes of MPS). A link of the
 * image must not cause anything to be created in one of them: the low-level runtime creates nodes
 * and mount points wherever a path resolves to.
 */
#ifndef GRAFT_START_HOST_DIRECTORIES_H
#define GRAFT_START_HOST_DIRECTORIES_H

#include "base/image_root.h"
#include "formats/cdi/cdi.h"
#include "plan/plan.h"
#include "start/start.h"

/*
 * Refuse a container whose image redirects such a directory to /, /dev, /proc or /sys, or another
 * mount, of the engine or of ours, into such a directory. A root that is mounted later is not
 * examined. -1: GRAFT_UNSAFE, GRAFT_NO_MEMORY, and GRAFT_TOO_BIG if reading the image took too
 * long.
 */
int graft_start_check_plan_directories(const struct graft_start *create, const struct graft_plan *plan,
				       struct graft_error *err);
int graft_start_check_spec_directories(const struct graft_start *create, const struct graft_cdi_edits *edits,
				       struct graft_error *err);
/*
 * What `path`, which is clean, will resolve to. Missing components will be created where their
 * parents and the links on the way point to. What the image has in /dev, /proc and /sys, and in
 * `cover`, unless NULL, is ignored: it will be covered. NULL: it resolves to nothing, or this
 * cannot be determined.
 */
const char *graft_start_find_place(const struct graft_image_root *root, const char *path, const char *cover,
				   struct graft_arena *arena);
/*
 * Whether a link of the image redirects a mount at `path` to /dev, /proc, /sys or the root, or this
 * cannot be determined.
 */
bool graft_start_is_led_over_system(const struct graft_image_root *root, const char *path, struct graft_arena *arena);

#endif
