/* SPDX-License-Identifier: Apache-2.0 */
/* run: moves this process onto the simulated host. */
#ifndef GRAFT_SIM_RUN_H
#define GRAFT_SIM_RUN_H

#include <stdbool.h>

#include "base/error.h"
#include "topology.h"

/*
 * Moves this process into a mount namespace of its own, in which /proc/driver, /proc/devices, /dev,
 * the driver's libraries and programs and the loader's cache are those of the topology. The rest of
 * the machine is not affected. Needs CAP_SYS_ADMIN. Fails if a real driver is loaded, unless
 * `force`. Without `overlays` the driver's files are linked into the host's directories. Returns 0,
 * or -1 with the error set; the process is then left in an undefined state and should exit.
 */
int sim_enter(struct sim_topology *topology, bool force, bool overlays, struct graft_error *err);

#endif
