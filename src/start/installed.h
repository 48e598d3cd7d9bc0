/* SPDX-License-Identifier: Apache-2.0 */
/*
 * installed: what a program of a toolkit that nvidia-ctk-installer installed has around it (SPEC
 * installer-and-nri 4): its configuration below its own directory, and a driver that may not be
 * loaded yet. The existing stack has scripts for this, which need a shell on the host.
 *
 * The installer exchanges a whole directory. A program that started from the old one has a name
 * below a directory GRAFT_STAGE_PREFIX*, next to the new one, which may be gone by the time it is
 * used: these functions name the new one instead.
 */
#ifndef GRAFT_START_INSTALLED_H
#define GRAFT_START_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

#include "base/arena.h"

#define GRAFT_TOOLKIT_DIRECTORY "toolkit"
#define GRAFT_STAGE_PREFIX      ".graft-toolkit-"
#define GRAFT_OWN_CONFIG        ".config/nvidia-container-runtime/config.toml"

/*
 * The directory of the program `self`, as /proc/self/exe names it: without " (deleted)", and with
 * the name that a staged or replaced toolkit has or had. Returns false if it has none or it is too
 * long.
 */
bool graft_installed_directory(const char *self, char directory[PATH_MAX]);
/* The same of this program. */
bool graft_own_directory(char directory[PATH_MAX]);
/* The configuration below this program's directory, in the arena; NULL if there is none. */
const char *graft_own_config(struct graft_arena *arena);

/*
 * Whether the driver's kernel module is loaded, by `proc`, where procfs is. QUIRK a kernel without
 * loadable modules has no /proc/modules; the driver's own directory says it, too.
 */
bool graft_driver_is_loaded(const char *proc);

#endif
