/* SPDX-License-Identifier: Apache-2.0 */
/* lease_end: signals the processes that hold a lease, and no other process. */
#ifndef GRAFT_LEASE_LEASE_END_H
#define GRAFT_LEASE_LEASE_END_H

#include "lease/lease_alive.h"

/*
 * Sends the signal to each process that holds the lease (graft_lease_processes()); 0: to none.
 * *ret_n is how many there were. A process may end meanwhile, and another one that
 * gets its id is not signalled. BASELINE 5.3: before pidfd_open(2) that cannot be excluded. Returns
 * -1 if a process may not be signalled, or with GRAFT_NO_MEMORY.
 */
int graft_lease_signal(const struct graft_lease_now *now, const struct graft_lease *lease, int number,
		       struct graft_arena *arena, size_t *ret_n, struct graft_error *err);

#endif
