/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_look: what changes about GPUs while a claim waits for them: who uses them without a lease,
 * which have failed, and since when they are free. Looked at before each try.
 */
#ifndef GRAFT_LEASE_LEASE_LOOK_H
#define GRAFT_LEASE_LEASE_LOOK_H

#include "lease/lease_table.h"
#include "lease/lease_users.h"
#include "request/claim.h"
#include "request/config.h"

/* Takes time, and is done before the table is locked. */
struct graft_lease_look {
	struct graft_lease_user *users;
	size_t n_users;
};

/*
 * Looks. Sets `ill` and `freed` of the GPUs, and, for the container of that name, what it had
 * before in the claim; `container` and `claim` may be NULL. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_look_first(const struct graft_config *config, const char *container, struct graft_claim *claim,
			   struct graft_arena *arena, struct graft_lendable *host, struct graft_lease_look *ret_look,
			   struct graft_error *err);
/* Sets `in_use`, now that the leases are known. */
int graft_lease_look_at(const struct graft_lease_look *look, const struct graft_lease_table *table,
			struct graft_lendable *host, struct graft_error *err);

#endif
