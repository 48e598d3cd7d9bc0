/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_wait: sleeps until the table may have changed: another process has written to it, a process
 * that holds a lease has ended, or a time has passed, for changes that the kernel does not report.
 */
#ifndef GRAFT_LEASE_LEASE_WAIT_H
#define GRAFT_LEASE_LEASE_WAIT_H

#include <poll.h>

#include "base/log.h"
#include "lease/lease_table.h"

#define GRAFT_LEASE_WATCHED 64u
#define GRAFT_LEASE_WAITING "waiting for GPUs" /* the beginning of the message that is logged every 10 s */

struct graft_lease_wait {
	uint64_t until; /* on graft_lease_clock() */
	size_t place;   /* how many are before this one */
	const struct graft_log *log;
	struct pollfd fds[GRAFT_LEASE_WATCHED + 1]; /* the first is of inotify; owned */
	size_t n_fds;
	int pause_ms;
	uint64_t said; /* when it was last logged */
};
#define GRAFT_LEASE_WAIT_INIT \
	{                     \
		.n_fds = 0    \
	}

/*
 * Watches the table and the processes that hold its leases or wait for one. Call it with the lock
 * held. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_wait_watch(struct graft_lease_wait *wait, const struct graft_lease_table *table,
			   struct graft_error *err);
/* Sleeps. Returns 0 when the table may have changed or the time is over; -1 with GRAFT_IO. */
int graft_lease_wait_next(struct graft_lease_wait *wait, struct graft_error *err);
void graft_lease_wait_done(struct graft_lease_wait *wait);
#define auto_lease_wait __attribute__((cleanup(graft_lease_wait_done)))

#endif
