/* SPDX-License-Identifier: Apache-2.0 */
/*
 * give: the steps around a container's plan that the modes share: examine the image beforehand;
 * afterwards log the plan, link its nodes for systemd, and apply it.
 */
#ifndef GRAFT_START_GIVE_H
#define GRAFT_START_GIVE_H

#include "apply/dev_char.h"
#include "base/image_root.h"
#include "host/discover.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "start/start.h"

/*
 * Opens the container's root. 1: *root is open, and the caller closes it. 0: it is not visible,
 * because config.json has no root or because it is mounted later; plan for an ordinary image then.
 * -1: GRAFT_NO_MEMORY.
 */
int graft_start_open_image(const struct graft_start *create, struct graft_image_root *root, struct graft_error *err);
/*
 * Finds create->plain_mounts. Refuses an image whose /dev is a link: nodes would be made where it
 * leads. -1: GRAFT_UNSAFE, GRAFT_NO_MEMORY.
 */
int graft_start_look_at_mounts(struct graft_start *create, struct graft_error *err);
/*
 * Where a path of the image leads, which need not exist: without links. NULL: it leads nowhere, or
 * it cannot be determined. graft_start_image_place() then returns the path itself, and also if
 * `root` is NULL, or for a path in /dev, /proc or /sys, which the container's own mounts cover.
 * Paths are absolute and clean; the result may be in the arena.
 */
const char *graft_start_find_image_place(const struct graft_image_root *root, const char *path,
					 struct graft_arena *arena);
const char *graft_start_image_place(const struct graft_image_root *root, const char *path, struct graft_arena *arena);
/* Whether it is a bind mount, by its type or by an option. */
bool graft_start_is_bind(const struct graft_oci_mount *mount);
/* The bits (GRAFT_HOOK_*) of nvcdi-disable-hooks. An unknown name is only a warning. */
uint32_t graft_start_disabled_hooks(const struct graft_start *create);
/*
 * Whether the low-level runtime will bind the host's nodes into the container because it cannot
 * create any: as an ordinary user, or in a user namespace.
 */
bool graft_start_binds_nodes(const struct graft_start *create);

/*
 * Logs each decision, links the nodes, adds create->edits, edits the document and the root of
 * the container; fails as apply/oci/to_oci.h and host_mounts.h do. `image`: what is known of the
 * root, NULL = it was not examined. `detail`: log for the progress of the edits; NULL = none. A
 * link that cannot be made is only a warning. If create->comes_back, create->waiting receives the
 * edits that must wait for the mounts. With create->only_look it changes nothing but the document,
 * which gets no hook, and the annotation GRAFT_OCI_LATE_MOUNTS that a `create` with a process ID
 * would give.
 */
int graft_start_give(struct graft_start *create, const struct graft_plan *plan, const struct graft_image *image,
		     const struct graft_log *detail, struct graft_error *err);

/*
 * Makes links in /dev/char for nodes that a container gets (apply/dev_char.h) if we are root and
 * systemd may manage the container: systemd revokes access to a device without such a link when it
 * reloads. Failures are only warnings.
 */
void graft_start_link_nodes(const struct graft_start *create, const struct graft_dev_char *nodes, size_t n_nodes);

/*
 * The driver root of config.toml, with NVML's unprivileged child, for discovery that logs
 * nothing. The root belongs to the configuration.
 */
struct graft_host_options graft_start_host_options(const struct graft_start *create);

#endif
