/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_mps: GPUs that are shared by MPS: one control daemon for each, started by the first lease
 * and ended after the last. A separate process, its keeper, starts the daemon, sleeps as long as a
 * lease has a slot of the GPU, and ends the daemon. If keeper or daemon are killed, the next lease
 * starts them again.
 *
 *	DIRECTORY/mps/UUID/	lock	held while a keeper is started, and while it ends
 *				keeper	held by the keeper
 *				state	"ready", or why it failed
 *				mode	the compute mode of the GPU before
 *				pipe, shm	what programs get; log
 */
#ifndef GRAFT_LEASE_LEASE_MPS_H
#define GRAFT_LEASE_LEASE_MPS_H

#include "base/log.h"
#include "lease/lease.h"
#include "request/config.h"

#define GRAFT_LEASE_MPS_COMMAND "mps" /* nvidia-ctk lease mps GPU */

/* What a program needs from its GPU's daemon. All NULL: there is none. */
struct graft_lease_mps {
	const char *base;
	const char *pipe, *shm, *log; /* directories on the host */
};

/*
 * Returns the directories of the lease's GPU, in the arena; `shm` is NULL if the daemon uses the
 * host's. Call it when the daemon runs. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_mps_find(const struct graft_config *config, const struct graft_lease *lease, struct graft_arena *arena,
			 struct graft_lease_mps *ret_mps, struct graft_error *err);
/*
 * Appends a program's variables: the daemon's place, and its limits. `pipe` is the directory as the
 * program sees it. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_mps_variables(const struct graft_lease *lease, const char *pipe, struct graft_arena *arena,
			      const char ***variables, size_t *n, struct graft_error *err);
/*
 * Makes sure that the daemon of the lease's GPU runs; does nothing for a lease without one. The
 * lease must be in the table, or the keeper would end at once. Returns -1, with the reason in the
 * error, if it does not run.
 */
int graft_lease_mps_ensure(const struct graft_config *config, const struct graft_lease *lease,
			   const struct graft_log *log, struct graft_arena *arena, struct graft_error *err);
/*
 * The keeper of a GPU. Returns when the daemon has ended, or -1 if it cannot run. Now and then it
 * executes its program again to free memory; `lock_fd` is the lock that it then keeps, -1 the first
 * time.
 */
int graft_lease_mps_keep(const struct graft_config *config, const char *gpu, int lock_fd, const struct graft_log *log,
			 struct graft_arena *arena, struct graft_error *err);

/*
 * Lists the UUIDs of GPUs whose keeper has ended although there is something left to end. Returns
 * -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_mps_abandoned(const struct graft_config *config, struct graft_arena *arena,
			      struct graft_strings *ret_gpus, struct graft_error *err);
/* Starts a keeper for one of these GPUs, which ends the unused daemon; none if it has one. */
int graft_lease_mps_ensure_keeper(const struct graft_config *config, const char *gpu, struct graft_arena *arena,
				  struct graft_error *err);

#endif
