/* SPDX-License-Identifier: Apache-2.0 */
/* lease_mps_parts: file names and the lock, which both sides of lease_mps.h use. */
#ifndef GRAFT_LEASE_LEASE_MPS_PARTS_H
#define GRAFT_LEASE_LEASE_MPS_PARTS_H

#include "lease/lease_mps.h"

#define GRAFT_LEASE_MPS        "mps" /* below the table's directory */
#define GRAFT_LEASE_MPS_LOCK   "lock"
#define GRAFT_LEASE_MPS_KEEPER "keeper"
#define GRAFT_LEASE_MPS_STATE  "state"
#define GRAFT_LEASE_MPS_MODE   "mode"
#define GRAFT_LEASE_MPS_READY  "ready"

/* Returns the directories of a GPU, in the arena. */
int graft_lease_mps_place(const struct graft_config *config, const char *gpu, struct graft_arena *arena,
			  struct graft_lease_mps *ret_mps, struct graft_error *err);
/* Opens a file of the GPU's directory, and makes it if it is missing. Returns -1 with errno. */
int graft_lease_mps_open(const struct graft_lease_mps *mps, const char *name, struct graft_arena *arena);
/* Takes the lock; closing *ret_fd releases it. Waits up to a minute. */
int graft_lease_mps_lock(const struct graft_lease_mps *mps, struct graft_arena *arena, int *ret_fd,
			 struct graft_error *err);

#endif
