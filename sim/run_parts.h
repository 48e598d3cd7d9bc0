/* SPDX-License-Identifier: Apache-2.0 */
/* run_parts: the steps of `run`, each on a mount namespace that is already this process's own. */
#ifndef GRAFT_SIM_RUN_PARTS_H
#define GRAFT_SIM_RUN_PARTS_H

#include <stdbool.h>

#include "base/error.h"

#define SIM_STAGE      "/run/graft-sim"  /* a tmpfs in the namespace; an empty directory elsewhere */
#define SIM_STAGE_ROOT SIM_STAGE "/root" /* the driver root, as `create` makes it */

/*
 * Lays what is below SIM_STAGE_ROOT + `directory` over the host's `directory`: where the host lacks something, the directory becomes an
 * overlay whose changes are lost in the end; otherwise the directories below are looked at. Mounts below it stay where they are. Without
 * `overlays`, or where the kernel refuses them, the directory becomes one of links to the driver's and the host's files.
 */
int sim_merge(const char *directory, bool overlays, struct graft_error *err);

/* The same for a directory of the kernel's (sysfs), where links are of no use: what cannot be done is left out. */
void sim_merge_if_possible(const char *directory, bool overlays);

/* A /dev of its own: the host's nodes, without those of a real driver, and the simulated ones. */
int sim_replace_dev(struct graft_error *err);

/* mount(2) --bind, recursive. */
int sim_bind(const char *from, const char *to, struct graft_error *err);

#endif
