/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_take: takes a lease: reads the table, chooses and writes while it holds the table's lock.
 * Nothing else is needed afterwards: the lease counts for as long as its holder exists.
 */
#ifndef GRAFT_LEASE_LEASE_TAKE_H
#define GRAFT_LEASE_LEASE_TAKE_H

#include "base/log.h"
#include "lease/lease.h"
#include "request/claim.h"
#include "request/config.h"

struct graft_lease_state;

struct graft_lease_ask {
	const struct graft_claim *claim;
	struct graft_lease_holder holder;
	uint32_t uid;      /* of the owner */
	const char *owner; /* the owner's name; NULL = none */
	bool urgent;       /* goes before others that wait */
	bool only_look;    /* only determine what it would get now: take and change nothing, and do not wait */
	const struct graft_lease_state *state; /* with `only_look`: instead of this host; NULL = none */
	const char *what;                      /* its purpose; NULL = unknown */
	uint64_t for_ms; /* a token's time, or how long another is expected to last; 0 = not known */
};

/*
 * Sets how long the claim waits, unless it specifies that itself: from `text` or, if that is NULL,
 * from the configuration. Returns -1 with GRAFT_INVALID if that is not a duration.
 */
int graft_lease_set_wait(const struct graft_config *config, const char *text, struct graft_claim *claim,
			 struct graft_error *err);

/*
 * Takes a lease, and waits as long as the claim specifies. Strings are in the arena. A claim for
 * another lease's devices makes a second lease, which outlives the first. A claim for names of
 * devices that are not lent makes no lease: its id is NULL then. Returns -1 as
 * graft_lease_choose(), graft_lease_host_read() and graft_lease_table_open(); nothing is lent then.
 */
int graft_lease_take(const struct graft_config *config, const struct graft_lease_ask *ask, const struct graft_log *log,
		     struct graft_arena *arena, struct graft_lease *ret_lease, struct graft_error *err);

/*
 * Fails with GRAFT_UNKNOWN_DEVICE if the lease holds nothing: the claim names only devices that are
 * not lent.
 */
int graft_lease_check_named(const struct graft_lease *lease, struct graft_error *err);
/* Lists the devices that a lease holds. Returns -1 with GRAFT_NO_MEMORY. */
int graft_lease_devices(const struct graft_lease *lease, struct graft_arena *arena, struct graft_strings *ret_devices,
			struct graft_error *err);

#endif
