/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_users: which processes of this host have GPUs open, with a lease or without. Processes that
 * hold a lease, or descend from one that does, use what they were lent; the others may use GPUs
 * that are free in the table.
 */
#ifndef GRAFT_LEASE_LEASE_USERS_H
#define GRAFT_LEASE_LEASE_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lease/lease_alive.h"
#include "lease/lease_choice.h"

struct graft_lease_user {
	uint32_t pid, uid;
	const char *name; /* name of its program, according to the process; printable */
	dev_t *nodes;     /* character devices that it has open, each once */
	size_t n_nodes;
	uint32_t *ancestors; /* itself, its parent and so on */
	size_t n_ancestors;
	bool computes; /* it uses GPUs, rather than only querying them */
};

/*
 * Lists the processes that have a node of a GPU open. Those that the caller may not examine are
 * left out. Everything is in the arena. Returns -1 with GRAFT_NO_MEMORY or if there is no /proc.
 */
int graft_lease_users_read(const struct graft_root *root, struct graft_arena *arena,
			   struct graft_lease_user **ret_users, size_t *ret_n, struct graft_error *err);
/* Returns whether the process or one of its ancestors is among these. */
bool graft_lease_user_is_of(const struct graft_lease_user *user, const uint32_t *pids, size_t n);
/* Returns whether the process has the node open. */
bool graft_lease_user_has(const struct graft_lease_user *user, uint32_t node_major, uint32_t node_minor);
/* Appends "process 4711 (python3, uid 1000)". */
void graft_lease_user_describe(const struct graft_lease_user *user, struct graft_buffer *out);

/*
 * Lists the processes of all holders. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_users_holders(const struct graft_lease_now *now, const struct graft_lease *leases, size_t n_leases,
			      struct graft_arena *arena, uint32_t **ret_pids, size_t *ret_n, struct graft_error *err);
/*
 * Sets `in_use` of the GPUs and MIG devices on which a process without a lease computes. The texts
 * are in the arena.
 */
int graft_lease_users_mark(const struct graft_lease_user *users, size_t n_users, const struct graft_lease_now *now,
			   const struct graft_lease *leases, size_t n_leases, struct graft_arena *arena,
			   struct graft_lendable *host, struct graft_error *err);

#endif
