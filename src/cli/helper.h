/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper: programs of ours that a statically linked program starts because it cannot load a
 * library: graft-nvml, graft-systemd (docs/decisions/0017-static-runtime.md). Part of the static
 * programs only.
 */
#ifndef GRAFT_CLI_HELPER_H
#define GRAFT_CLI_HELPER_H

/*
 * Becomes the program `name`: the one next to this program, as in a build directory, or else the
 * installed one. Returns only if neither can be executed, with errno set.
 */
void cli_helper_exec(const char *name, char *const *argv, char *const *environment);

#endif
