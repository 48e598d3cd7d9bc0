/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_holder: what keeps a lease alive, as far as known when it is taken: a process, a container
 * whose first process exists, or a container that is being made.
 */
#ifndef GRAFT_LEASE_LEASE_HOLDER_H
#define GRAFT_LEASE_LEASE_HOLDER_H

#include <sys/types.h>

#include "apply/cgroup/cgroup.h"
#include "lease/lease.h"

#define GRAFT_LEASE_SCOPE "graft-lease-" /* prefix of the names of cgroups that are made for leases */

/* What configuration and command line specify for a container that does not exist yet. */
struct graft_lease_container {
	const char *cgroups_path; /* linux.cgroupsPath; NULL = none */
	const char *pid_file;     /* the file that the low-level runtime will write; NULL = none */
	const char *id;           /* NULL = not known */
};

/*
 * All return 0, or -1 with GRAFT_NO_MEMORY or the error of reading. Strings are in the arena.
 */

/* A process alone; 0 = this one. */
int graft_lease_holder_of_process(pid_t pid, struct graft_arena *arena, struct graft_lease_holder *ret_holder,
				  struct graft_error *err);
/*
 * The PID in /proc of the process that called this one to change its container. In a PID namespace
 * whose /proc is not mounted yet, that is the first process there, which is as old as the
 * container. -1, with GRAFT_LEASES: it cannot be found.
 */
pid_t graft_lease_caller(struct graft_arena *arena, struct graft_error *err);
/* The cgroup of a container's process; without one of its own, the process. */
int graft_lease_holder_of_container(pid_t pid, struct graft_arena *arena, struct graft_lease_holder *ret_holder,
				    struct graft_error *err);
/*
 * This process, in a new cgroup of its own. Create and enter *ret_place once the lease is taken
 * (apply/cgroup/cgroup_scope.h): the lease records what to remove when it has ended.
 */
int graft_lease_holder_in_scope(struct graft_arena *arena, struct graft_lease_holder *ret_holder,
				struct graft_cgroup_place *ret_place, struct graft_error *err);
/*
 * The container that this process will make when it has become the low-level runtime. -1 also with
 * GRAFT_UNSUPPORTED, if there is no way to find the container afterwards.
 */
int graft_lease_holder_to_be(const struct graft_lease_container *container, struct graft_arena *arena,
			     struct graft_lease_holder *ret_holder, struct graft_error *err);

/*
 * Returns the path of the cgroup that linux.cgroupsPath means: an absolute path unchanged,
 * "SLICE:PREFIX:NAME" as systemd will make it. NULL: a relative path, which only the low-level
 * runtime can resolve, one that does not belong to a single container, or out of memory. Pure.
 */
const char *graft_lease_cgroup_path(const char *cgroups_path, struct graft_arena *arena);

/*
 * Returns the id of a cgroup's container, as engines name cgroups, or else the cgroup's name. NULL:
 * out of memory.
 */
const char *graft_lease_container_of(const char *cgroup, struct graft_arena *arena);

#endif
