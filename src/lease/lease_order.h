/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_order: whose turn it is: which waiter goes first, and whether the free GPUs are for it. A
 * pure function of tickets, leases and the log.
 *
 * The first ticket that cannot get what it asks for reserves all GPUs that fit it; later ones get
 * the rest. An owner over its limit waits without reserving anything. Urgent tickets go before all
 * others in either order.
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
 * Chooses for `ask`, a ticket of the queue, or a new one, which comes after all others of its
 * owner; `claim` is what it asks for. Returns as graft_lease_choose(), and -1 with GRAFT_BUSY if
 * the owner would be over its limit or others go first. *ret_place is how many tickets are before
 * it.
 */
int graft_lease_turn(const struct graft_lease_queue *queue, const struct graft_lease *ask,
		     const struct graft_claim *claim, struct graft_arena *arena, struct graft_lease_slot **ret_slots,
		     size_t *ret_n, size_t *ret_place, struct graft_error *err);

/*
 * Returns an owner's use in the last 24 hours, in GPU seconds; those of six hours ago count half.
 */
double graft_lease_use(const char *log, const struct graft_lease *owner, int64_t date);

/*
 * Returns how many slots an owner holds; `by_uid`: all owners with its user id. Slots that several
 * leases share count once. Those of pods do not count.
 */
uint32_t graft_lease_count_held(const struct graft_lease *leases, size_t n_leases, const struct graft_lease *owner,
				bool by_uid);

/* UINT32_MAX: as many as there are. */
struct graft_lease_limits {
	uint32_t owner; /* for an owner */
	uint32_t uid;   /* for all owners whose user id is the same: names cannot evade it */
};

/*
 * Reads the limits of a lease's owner from graft.leases.limits: that of its name or else the
 * default one, and that of its user id. Returns -1 with GRAFT_INVALID.
 */
int graft_lease_limit(const struct graft_strings *limits, const struct graft_lease *lease,
		      struct graft_lease_limits *ret_limits, struct graft_error *err);

#endif
