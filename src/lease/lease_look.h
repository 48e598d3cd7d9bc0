/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_look: the facts about GPUs that change while a claim waits: which processes use them
 * without a lease, which have failed, and since when they are free. Read before each attempt.
 */
#ifndef GRAFT_LEASE_LEASE_LOOK_H
#define GRAFT_LEASE_LEASE_LOOK_H

#include "lease/lease_table.h"
#include "lease/lease_users.h"
#include "request/claim.h"
#include "request/config.h"

/* Takes time: call it before locking the table. */
struct graft_lease_look {
	struct graft_lease_user *users;
	size_t n_users;
};

/*
 * Sets `ill` and `freed` of the GPUs and, in the claim, what the container of that name had before;
 * `container` and `claim` may be NULL. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_look_first(const struct graft_config *config, const char *container, struct graft_claim *claim,
			   struct graft_arena *arena, struct graft_lendable *host, struct graft_lease_look *ret_look,
			   struct graft_error *err);
/* Sets `in_use`, now that the leases are known. */
int graft_lease_look_at(const struct graft_lease_look *look, const struct graft_lease_table *table,
			struct graft_lendable *host, struct graft_error *err);

#endif
