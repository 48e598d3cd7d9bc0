/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_state: everything that decides which GPUs a claim gets, as a value with a JSON form: GPUs,
 * leases, waiting processes, limits. It allows repeating a choice elsewhere.
 */
#ifndef GRAFT_LEASE_LEASE_STATE_H
#define GRAFT_LEASE_LEASE_STATE_H

#include "base/log.h"
#include "lease/lease_order.h"
#include "request/config.h"

struct graft_lease_state {
	const char *claim; /* for which it was read: facts for other claims may be missing */
	struct graft_lendable host;
	struct graft_pci_place *places; /* of the host's GPUs, which point there */
	size_t n_places;
	struct graft_lease *leases;
	size_t n_leases;
	struct graft_lease *tickets;
	size_t n_tickets;
	const char *log; /* of the table, if there are tickets; NULL = none */
	const char *order;
	struct graft_strings limits;
	uint32_t uid; /* of the claimant */
	uint64_t now; /* milliseconds since the host started */
	int64_t date; /* seconds since 1970 */
};
extern const struct graft_record graft_lease_state_record;

/* Reads this host. Takes nothing. Strings are in the arena. Returns -1 like graft_lease_take(). */
int graft_lease_state_look(const struct graft_config *config, const struct graft_claim *claim,
			   const struct graft_log *log, struct graft_arena *arena, struct graft_lease_state *ret_state,
			   struct graft_error *err);
/*
 * Reads the JSON form, and checks it as a table's files are. Returns -1 with GRAFT_FORMAT,
 * GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_lease_state_parse(const char *text, size_t length, struct graft_arena *arena,
			    struct graft_lease_state *ret_state, struct graft_error *err);
/*
 * Determines what the claim gets: sets slots and claim of a lease without a holder. Pure. Returns
 * -1 like graft_lease_turn().
 */
int graft_lease_state_choose(const struct graft_lease_state *state, const struct graft_claim *claim,
			     struct graft_arena *arena, struct graft_lease *ret_lease, struct graft_error *err);

#endif
