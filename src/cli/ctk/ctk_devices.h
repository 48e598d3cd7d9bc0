/* SPDX-License-Identifier: Apache-2.0 */
/* ctk_devices: kernel modules and control nodes, for both commands of `system`. */
#ifndef GRAFT_CLI_CTK_CTK_DEVICES_H
#define GRAFT_CLI_CTK_CTK_DEVICES_H

#include "cli/ctk/ctk.h"

/*
 * Cleans a root given by an option: removes doubled and trailing slashes; an empty or missing one
 * becomes "/". Returns a string in the arena, or NULL after reporting that the path is not
 * absolute. `option` is the option's name, for the message.
 */
const char *ctk_clean_root(const struct ctk *ctk, const char *option, const char *path);

/*
 * Loads the driver's modules with the modprobe of `driver_root`, stopping at the first failure.
 * With `dry_run` only logs what would be run. Returns the exit status.
 */
int ctk_load_kernel_modules(const struct ctk *ctk, const char *driver_root, bool dry_run);
/*
 * Makes the nodes that belong to no single GPU, below `dev_root`. Existing nodes are left alone,
 * except that a device with a different number is replaced. After a failure the new nodes are
 * removed. With `dry_run` only logs what would be made. Returns the exit status.
 */
int ctk_make_control_nodes(const struct ctk *ctk, const char *dev_root, bool dry_run);
/* The same, with an error for the caller to report. Returns 0 or -1. */
int ctk_put_control_nodes(const struct ctk *ctk, const char *dev_root, bool dry_run, struct graft_error *err);

#endif
