/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim: a request for GPUs by number or kind instead of by name: "any:2", "mig:1g.10gb",
 * "lease:k3v...". It is written where a list of devices could be, and nothing else may be in that
 * list. Pure.
 *
 *	any[:N]             N whole GPUs that are not lent
 *	mig:PROFILE[:N]     N MIG devices of a profile that are not lent
 *	share[:N]           a slot of each of N GPUs that are lent in slots
 *	lease:ID            what the lease ID holds
 *	named:NAME[;NAME]   these GPUs and MIG devices, as lists of devices name them; or "all"
 *
 * Constraints follow, separated by ',', ';' or '/', for engines and shells that split at one of
 * them: model=TEXT (a part of the name), mem>=SIZE (of the GPU: "40G", "500M"), same=nvlink, numa
 * or pcie, not=GPU (an index or UUID; more may follow), wait=TIME (how long to wait for them:
 * "30m"), sticky (what the container had before, if it is free). For share and mig: spread, to
 * prefer the GPUs of which the least is taken. For share only: mem=SIZE and sm=PERCENT, how much of
 * each GPU the programs may use.
 */
#ifndef GRAFT_REQUEST_CLAIM_H
#define GRAFT_REQUEST_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "request/config.h"

#define GRAFT_CLAIM_COUNT_MAX 64u
#define GRAFT_LEASE_ID_SIZE   12u /* letters of the id of a lease: a to z and 2 to 7 */

enum graft_claim_kind { GRAFT_CLAIM_ANY, GRAFT_CLAIM_MIG, GRAFT_CLAIM_SHARE, GRAFT_CLAIM_LEASE, GRAFT_CLAIM_NAMED };
enum graft_claim_same { GRAFT_SAME_NOTHING, GRAFT_SAME_NVLINK, GRAFT_SAME_NUMA, GRAFT_SAME_PCIE };
extern const char *const graft_claim_same_names[4]; /* "" nvlink numa pcie */

struct graft_claim {
	enum graft_claim_kind kind;
	uint32_t count;      /* at least 1; 0 for LEASE and NAMED */
	const char *profile; /* MIG */
	const char *lease;   /* LEASE: its id */
	const char *model;   /* part of the GPU's model, in any case; NULL = any model */
	uint32_t memory_mib; /* at least this much; 0 = any */
	enum graft_claim_same same;
	struct graft_strings excluded; /* indexes and UUIDs */
	struct graft_strings names;    /* NAMED */
	uint32_t limit_mib;            /* SHARE: memory of each GPU that may be used; 0 = not given */
	uint32_t limit_percent;        /* SHARE: share of its multiprocessors; 0 = not given */
	bool spread;                   /* SHARE, MIG */
	bool sticky;
	bool has_user;                 /* not part of the text: */
	uint32_t user;                 /* the user as whom the programs that use the GPUs will run */
	struct graft_strings previous; /* what it had before: UUIDs */
	bool has_wait;
	uint64_t wait_ms;
};

/* Returns whether a word of a list begins a claim. */
bool graft_claim_is_in(const struct graft_strings *words);
/*
 * Reads a claim from a list of devices that has been split at commas. Strings are in the arena.
 * Returns -1 with GRAFT_INVALID, also if the list has devices in addition to the claim, or with
 * GRAFT_NO_MEMORY.
 */
int graft_claim_read(const struct graft_strings *words, struct graft_arena *arena, struct graft_claim *ret_claim,
		     struct graft_error *err);
/*
 * Makes a claim from the devices that a list names, for hosts on which named devices need a lease
 * as well (graft.leases.mode). Accepts names of CDI devices too; those of classes other than GPUs
 * need no lease. Names stay as they are written; graft_lease_names_resolve() says what they mean.
 * *ret_none: nothing in the list needs a lease. Returns -1 with GRAFT_INVALID for a text that
 * cannot be the name of a GPU, or with GRAFT_NO_MEMORY.
 */
int graft_claim_of_names(const struct graft_strings *words, struct graft_arena *arena, struct graft_claim *ret_claim,
			 bool *ret_none, struct graft_error *err);
/* The same as graft_claim_read() for a text. */
int graft_claim_parse(const char *text, struct graft_arena *arena, struct graft_claim *ret_claim,
		      struct graft_error *err);
/* Appends the claim as graft_claim_parse() reads it: "any:2,model=H100". */
void graft_claim_write(const struct graft_claim *claim, struct graft_buffer *out);
/*
 * Parses a duration, "90s", "30m", "8h" or "2d", of at most a year, in milliseconds. Returns false
 * for any other text.
 */
bool graft_claim_read_span(const char *text, uint64_t *ret_ms);
/* Returns whether a text has the form of a lease id. */
bool graft_lease_id_is_valid(const char *text);

#endif
