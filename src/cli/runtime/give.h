/* SPDX-License-Identifier: Apache-2.0 */
/*
 * give: what the modes do alike around a container's plan: look at its image before, and then tell the plan, link its nodes for systemd and apply it.
 */
#ifndef GRAFT_CLI_RUNTIME_GIVE_H
#define GRAFT_CLI_RUNTIME_GIVE_H

#include "apply/dev_char.h"
#include "base/root.h"
#include "cli/runtime/runtime.h"
#include "plan/plan.h"
#include "plan/planner.h"

/*
 * Opens the container's root. 1: *root is open, the caller's to close. 0: it cannot be seen, because config.json names none or it is mounted later; then
 * the plan is one for an ordinary image. -1: GRAFT_NO_MEMORY.
 */
int runtime_open_image(const struct runtime_create *create, struct graft_root *root, struct graft_error *err);
/* The bits of nvcdi-disable-hooks (GRAFT_HOOK_*). A word that is not known is a warning. */
uint32_t runtime_disabled_hooks(const struct runtime_create *create);
/* Whether the low-level runtime will bind the host's nodes into the container, for it may make none: an ordinary user, or a user namespace. */
bool runtime_binds_nodes(const struct runtime_create *create);

/*
 * One log line per decision, links for the nodes, then the edits of the document and the container's root (apply/to_oci.h, whose errors these are).
 * `image`: what was seen of the root, NULL = it was not looked at. `detail` gets what the sink tells of its work; NULL = nobody. A link that cannot be made is a warning.
 * create->waiting is set to what has to be done later, where somebody comes back for it.
 */
int runtime_give(struct runtime_create *create, const struct graft_plan *plan, const struct graft_image *image,
		 const struct graft_log *detail, struct graft_error *err);

/*
 * Links in /dev/char for nodes that a container gets (apply/dev_char.h), where we are root and systemd may manage the container: a device that systemd
 * does not know by its link is lost at its next reload. Failures are warnings.
 */
void runtime_link_nodes(const struct runtime_create *create, const struct graft_dev_char *nodes, size_t n_nodes);

#endif
