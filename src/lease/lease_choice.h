/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_choice: which of the GPUs without a holder a claim gets. A pure function of the host's
 * GPUs, the leases and the claim.
 */
#ifndef GRAFT_LEASE_LEASE_CHOICE_H
#define GRAFT_LEASE_LEASE_CHOICE_H

#include <stdbool.h>

#include "host/pci_tree.h"
#include "lease/lease.h"
#include "request/claim.h"

struct graft_lendable_mig {
	const char *uuid;                                /* NULL: not known */
	const char *profile;                             /* "1g.10gb"; NULL: not known */
	uint32_t gi, ci;                                 /* its instances */
	uint32_t gi_major, gi_minor, ci_major, ci_minor; /* of their nodes; 0: there are none */
	bool ill;
	const char *in_use;
};

struct graft_lendable_gpu {
	const char *uuid, *model; /* NULL: not known */
	const char *bus_id;       /* NULL: not known */
	uint32_t index;
	uint32_t major, minor;               /* of its node */
	uint32_t memory_mib;                 /* 0: not known */
	const struct graft_pci_place *place; /* NULL: not known */
	bool mig;                            /* in MIG mode: only its MIG devices can be used */
	struct graft_lendable_mig *migs;
	size_t n_migs;
	uint32_t replicas;   /* number of slots in which it is lent; 0: to one holder */
	const char *why_not; /* it is not lent: "not in graft.leases.pool"; NULL: it may be */
	/* What changes (lease/lease_look.h): */
	const char *ill; /* it has failed, so it is only lent by name; NULL: not known to have failed */
	const char
	    *in_use;   /* the process that uses it without a lease: "process 4711 (python3, uid 1000)"; NULL: none */
	int64_t freed; /* when a lease on it ended, in seconds since 1970; 0: long ago */
};

struct graft_lendable {
	struct graft_lendable_gpu *gpus; /* by index */
	size_t n_gpus;
	bool switches; /* all GPUs are linked to each other alike */
	bool mps;      /* shared GPUs are shared by MPS */
	bool simulated;
};

/*
 * Chooses. Whole GPUs are chosen so that the remaining ones stay well connected, and among equals
 * those that have been free longest; MIG devices and slots of shared GPUs so that as few GPUs as
 * possible are in use. If everything that the claim had before is free, it gets that. Slots are in
 * the arena; their strings are too, or belong to the host or a lease. `now` is for messages.
 * Returns -1 with GRAFT_BUSY if some that fit are held, with a hint that names who holds them;
 * GRAFT_UNKNOWN_DEVICE if the host has too few that fit; GRAFT_UNSUPPORTED for limits that nothing
 * enforces; GRAFT_NOT_FOUND for a lease that does not exist; GRAFT_NO_MEMORY.
 */
int graft_lease_choose(const struct graft_lendable *host, const struct graft_lease *leases, size_t n_leases,
		       const struct graft_claim *claim, uint64_t now, struct graft_arena *arena,
		       struct graft_lease_slot **ret_slots, size_t *ret_n, struct graft_error *err);

/*
 * Returns how many GPUs and MIG devices may be lent and meet the claim's constraints, held or not.
 * None for a claim for a lease's devices, which are held.
 */
uint32_t graft_lease_count_fitting(const struct graft_lendable *host, const struct graft_claim *claim);
/* Lists these devices; of shared GPUs, all slots. Returns -1 with GRAFT_NO_MEMORY. */
int graft_lease_list_fitting(const struct graft_lendable *host, const struct graft_claim *claim,
			     struct graft_arena *arena, struct graft_lease_slot **ret_slots, size_t *ret_n,
			     struct graft_error *err);
/* Returns whether the name is the GPU's index or UUID. */
bool graft_lendable_has_name(const struct graft_lendable_gpu *gpu, const char *name);
/*
 * Returns the GPU with that UUID, with *ret_mig NULL, or the GPU of the MIG device with it. NULL:
 * this host has none.
 */
const struct graft_lendable_gpu *graft_lendable_find(const struct graft_lendable *host, const char *uuid,
						     const struct graft_lendable_mig **ret_mig);
/*
 * Returns the process that uses the GPU without a lease, or NULL. Also NULL if a lease holds the
 * GPU: then the leases determine what is free.
 */
const char *graft_lease_user_of(const struct graft_lease *leases, size_t n_leases,
				const struct graft_lendable_gpu *gpu);
/* Returns how many slots of a shared GPU are free. */
uint32_t graft_lease_free_slots(const struct graft_lease *leases, size_t n_leases,
				const struct graft_lendable_gpu *gpu);
/*
 * Returns the place of the first lease, from `from` on, that holds the GPU or a MIG device of it;
 * n_leases: none.
 */
size_t graft_lease_next_of_gpu(const struct graft_lease *leases, size_t n_leases, size_t from, const char *gpu);

#endif
