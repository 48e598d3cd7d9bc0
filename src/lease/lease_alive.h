/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_alive: whether the holder of a lease still exists, on which the whole table depends. Reads
 * processes and cgroups of this host; changes nothing. A holder that cannot be examined counts as
 * alive: an idle GPU is better than one that is lent twice.
 */
#ifndef GRAFT_LEASE_LEASE_ALIVE_H
#define GRAFT_LEASE_LEASE_ALIVE_H

#include <stdbool.h>

#include "base/root.h"
#include "formats/procfs.h"
#include "lease/lease.h"

/* What leases are compared with. */
struct graft_lease_now {
	struct graft_root root; /* "/" */
	const char *boot;       /* boot id; never NULL */
	uint64_t time;          /* milliseconds since the host started, including those asleep */
	uint64_t pid_namespace; /* inode of the PID namespace whose ids /proc shows */
	uint64_t own_namespace; /* inode of ours, usually the same */
	uint64_t clock;         /* inode of our time namespace; 0: the first one */
};
#define GRAFT_LEASE_NOW_INIT            \
	{                               \
		.root = GRAFT_ROOT_INIT \
	}

/* Returns -1 if the kernel reports no boot id (GRAFT_LEASES), or with GRAFT_NO_MEMORY. */
int graft_lease_now_read(struct graft_lease_now *ret_now, struct graft_arena *arena, struct graft_error *err);
void graft_lease_now_done(struct graft_lease_now *now);
#define auto_lease_now __attribute__((cleanup(graft_lease_now_done)))
/*
 * Finds the PID namespace whose ids /proc shows, and ours. A process that starts in a new one, such
 * as a hook of LXC, may still see the /proc of the old one. Fails with GRAFT_LEASES if /proc may
 * not be examined.
 */
int graft_lease_namespaces(uint64_t *ret_of_proc, uint64_t *ret_own, struct graft_error *err);
/* The PID of this process in /proc; 0: none. */
uint32_t graft_lease_own_pid(void);
/*
 * The time namespace of this process, to whose clocks start times refer; 0: the first one, or a
 * kernel without them.
 */
uint64_t graft_lease_clock_namespace(void);
/* Milliseconds since the host started. */
uint64_t graft_lease_clock(void);

/*
 * Returns whether the lease counts; if not, *ret_why is the reason: "the host was restarted".
 * *ret_bound: the lease now identifies the cgroup or process that it named. Write it again;
 * otherwise a later one of that name would keep it alive. `scratch` is for reading.
 */
bool graft_lease_is_alive(const struct graft_lease_now *now, struct graft_lease *lease, struct graft_arena *scratch,
			  bool *ret_bound, const char **ret_why);

/*
 * Lists the processes that hold the lease: those of its cgroup, or its process, by ids of our own
 * PID namespace. Processes that cannot be examined are left out. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_processes(const struct graft_lease_now *now, const struct graft_lease *lease, struct graft_arena *arena,
			  uint32_t **ret_pids, size_t *ret_n, struct graft_error *err);

/*
 * Returns when the process started, in clock ticks since the host did; 0 if there is none or it is
 * a zombie. *ret_rc is 0, or -errno if its file could not be read.
 */
uint64_t graft_lease_process_start(const struct graft_root *root, uint32_t pid, struct graft_arena *scratch,
				   int *ret_rc);
/* Reads a process's parent and name, by the ids that /proc has. Returns false if there is none. */
bool graft_lease_process_family(const struct graft_root *root, uint32_t pid, struct graft_arena *scratch,
				struct graft_process_family *ret_family);

#endif
