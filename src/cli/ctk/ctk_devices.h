/* SPDX-License-Identifier: Apache-2.0 */
/* ctk_devices: kernel modules and control nodes, for both commands of `system`. */
#ifndef GRAFT_CLI_CTK_CTK_DEVICES_H
#define GRAFT_CLI_CTK_CTK_DEVICES_H

#include "cli/ctk/ctk.h"

/*
 * Cleans a root given by an option: removes doubled and trailing slashes; an empty or missing one
 * becomes "/". Returns 0, with *path in the arena, or -1 if it is not absolute. `option` is the
 * option's name, for the message.
 */
int ctk_clean_root(const struct ctk *ctk, const char *option, const char **path, struct graft_error *err);

/*
 * Loads the driver's modules with the modprobe of `driver_root`, stopping at the first failure.
 * With `dry_run` only logs what would be run. Returns 0 or -1.
 */
int ctk_load_kernel_modules(const struct ctk *ctk, const char *driver_root, bool dry_run, struct graft_error *err);
/*
 * Makes the nodes that belong to no single GPU, below `dev_root`. Existing nodes are left alone,
 * except that a device with a different number is replaced. After a failure the new nodes are
 * removed. With `dry_run` only logs what would be made. Returns 0 or -1.
 */
int ctk_make_control_nodes(const struct ctk *ctk, const char *dev_root, bool dry_run, struct graft_error *err);

#endif
