/* SPDX-License-Identifier: Apache-2.0 */
/* run: this process on the simulated host. */
#ifndef GRAFT_SIM_RUN_H
#define GRAFT_SIM_RUN_H

#include <stdbool.h>

#include "base/error.h"
#include "topology.h"

/*
 * Moves this process into a mount namespace of its own in which /proc/driver, /proc/devices, /dev, the driver's libraries and programs and
 * the loader's cache are those of the topology. The rest of the machine sees nothing of it. Needs CAP_SYS_ADMIN. Refused where a real
 * driver is loaded, unless `force`. Without `overlays` the driver's files come into the host's directories by links. -1 with the error set; the process is then no longer of use.
 */
int sim_enter(struct sim_topology *topology, bool force, bool overlays, struct graft_error *err);

#endif
