/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_order: whose turn it is: who goes first of those who wait, and whether what is free is for
 * them. Pure: from tickets, leases and the log.
 *
 * The first in order that cannot have what it asks for keeps all GPUs that fit it: those behind it
 * take what it has no use for. An owner over its limit waits without keeping anything. Urgent
 * tickets go before all others in either order.
 */
#ifndef GRAFT_LEASE_LEASE_ORDER_H
#define GRAFT_LEASE_LEASE_ORDER_H

#include <stdbool.h>

#include "lease/lease_choice.h"
#include "request/config.h"

#define GRAFT_LEASE_LONG_MS 3600000u /* a ticket that is older goes first, before any other */

struct graft_lease_queue {
	const struct graft_lendable *host;
	const struct graft_lease *leases;
	size_t n_leases;
	const struct graft_lease *tickets; /* in any order */
	size_t n_tickets;
	const char *log; /* its text, for what users have had; "" = nothing */
	const struct graft_config *config;
	uint64_t now; /* milliseconds since the host started */
	int64_t date; /* seconds since 1970 */
};

/*
 * Chooses for `ask`, a ticket of the queue or one that is not in it, which is behind all others of
 * its owner; `claim` is what it asks for. Returns as graft_lease_choose(), and -1 with GRAFT_BUSY
 * if the owner would be over its limit or others go first. *ret_place is how many tickets are
 * before it.
 */
int graft_lease_turn(const struct graft_lease_queue *queue, const struct graft_lease *ask,
		     const struct graft_claim *claim, struct graft_arena *arena, struct graft_lease_slot **ret_slots,
		     size_t *ret_n, size_t *ret_place, struct graft_error *err);

/*
 * Returns what an owner has had in the last 24 hours, in seconds of a GPU: those of six hours ago
 * count half.
 */
double graft_lease_use(const char *log, const struct graft_lease *owner, int64_t date);

/* UINT32_MAX: as many as there are. */
struct graft_lease_limits {
	uint32_t owner; /* for an owner */
	uint32_t uid;   /* for all owners whose user id is the same: names do not evade it */
};

/*
 * Reads the limits of a lease's owner from graft.leases.limits: that of its name or else the
 * default one, and that of its user id. Returns -1 with GRAFT_INVALID.
 */
int graft_lease_limit(const struct graft_strings *limits, const struct graft_lease *lease,
		      struct graft_lease_limits *ret_limits, struct graft_error *err);

#endif
