/* SPDX-License-Identifier: Apache-2.0 */
/* devices: what the two commands of `system` share: kernel modules and control nodes. */
#ifndef GRAFT_CLI_CTK_DEVICES_H
#define GRAFT_CLI_CTK_DEVICES_H

#include "cli/ctk/ctk.h"

/*
 * A root that an option names, without doubled and trailing slashes; "/" for an empty or missing one. NULL, and told, when it is no absolute path. `option` is the
 * option's name.
 */
const char *ctk_clean_root(const struct ctk *ctk, const char *option, const char *path);

/* Loads the driver's modules with the modprobe of `driver_root`; the first failure ends it. Dry: says what would be run. Returns the exit status. */
int ctk_load_kernel_modules(const struct ctk *ctk, const char *driver_root, bool dry_run);
/*
 * Makes the nodes that no GPU owns, below `dev_root`. What is there already is left alone, a device of another number replaced. A failure undoes what was
 * made. Returns the exit status.
 */
int ctk_make_control_nodes(const struct ctk *ctk, const char *dev_root, bool dry_run);

#endif
