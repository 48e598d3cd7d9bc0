/* SPDX-License-Identifier: Apache-2.0 */
/*
 * installed: what a program of a toolkit that nvidia-ctk-installer installed has around it (SPEC
 * installer-and-nri 4): its configuration below its own directory, and a driver that may not be
 * loaded yet. The existing stack has scripts for this, which need a shell on the host.
 *
 * The installer replaces a whole directory. A program that started from the old one then has a name
 * below a directory GRAFT_STAGE_PREFIX* next to the new one, and that directory may be removed
 * before the name is used. These functions return names in the new one instead.
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
 * the name that a staged or replaced toolkit has or had. Returns false if it has none, or if that
 * is too long.
 */
bool graft_installed_directory(const char *self, char directory[PATH_MAX]);
/* The same for this program. */
bool graft_own_directory(char directory[PATH_MAX]);
/* The configuration below this program's directory, in the arena; NULL if there is none. */
const char *graft_own_config(struct graft_arena *arena);

/*
 * Whether the driver's kernel module is loaded, according to the procfs at `proc`. QUIRK: a kernel
 * without loadable modules has no /proc/modules, but the driver's own directory exists there, too.
 */
bool graft_driver_is_loaded(const char *proc);

#endif
