/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_devices: which devices a CDI specification of a host has, and their names (SPEC ctk-and-cdi
 * 4.6, 4.9). Pure. A device is a GPU, a MIG device or an IMEX channel, and has one name per
 * requested strategy.
 */
#ifndef GRAFT_PLAN_CDI_DEVICES_H
#define GRAFT_PLAN_CDI_DEVICES_H

#include "base/arena.h"
#include "base/error.h"
#include "host/inventory.h"
#include "plan/select.h"

/* Naming strategies: identifier, name, help text. */
#define GRAFT_CDI_NAMING_LIST(X)                            \
	X(INDEX, "index", "0; of a MIG device 0:1")         \
	X(UUID, "uuid", "GPU-...; of a MIG device MIG-...") \
	X(TYPE_INDEX, "type-index", "gpu0; of a MIG device mig0:1")

enum graft_cdi_naming_bit {
#define X(name, word, help) GRAFT_CDI_NAMING_BIT_##name,
	GRAFT_CDI_NAMING_LIST(X)
#undef X
	    GRAFT_CDI_NAMINGS
};
enum graft_cdi_naming {
#define X(name, word, help) GRAFT_CDI_NAMING_##name = 1u << GRAFT_CDI_NAMING_BIT_##name,
	GRAFT_CDI_NAMING_LIST(X)
#undef X
};
extern const char *const graft_cdi_naming_words[GRAFT_CDI_NAMINGS]; /* indexed by bit number */

struct graft_cdi_choice {
	struct graft_selection selection; /* the GPU, or the MIG device and its GPU; empty: the driver without a GPU */
	const char **names;               /* empty if no strategy has a name for it */
	size_t n_names;
};

struct graft_cdi_choices {
	struct graft_cdi_choice *items; /* each device once */
	size_t n;
};

/*
 * Resolves ids to devices, in their order. An id is "all", an index, a UUID, a PCI address, a MIG
 * index "0:1", a MIG UUID or "none". The first "all" or "none" decides: "all" is every GPU that
 * programs can run on, then every MIG device; "none" is one device of that name without a GPU.
 * Returns -1 with GRAFT_INVALID "identifier is not a valid UUID or index: ..."; with
 * GRAFT_UNKNOWN_DEVICE, in the phrasing of NVML that scripts look for; or with GRAFT_NO_MEMORY.
 */
int graft_cdi_choose(const struct graft_inventory *inventory, const char *const *ids, size_t n_ids,
		     unsigned int namings, struct graft_arena *arena, struct graft_cdi_choices *ret_choices,
		     struct graft_error *err);

/*
 * Determines the facts (bits of enum graft_nvml_fact) that only NVML knows and without which ids
 * cannot be resolved, or names would be missing. Returns -1 with the errors of graft_cdi_choose().
 */
int graft_cdi_missing_facts(const struct graft_inventory *inventory, const char *const *ids, size_t n_ids,
			    unsigned int namings, struct graft_arena *arena, unsigned int *ret_facts,
			    struct graft_error *err);

/*
 * Adds to `choice` the names of a MIG device of a GPU or, if `mig` is NULL, of the GPU itself.
 * Names that are not known, or that a device may not have, are left out. Returns -1 with
 * GRAFT_NO_MEMORY.
 */
int graft_cdi_name(const struct graft_gpu *gpu, const struct graft_mig_device *mig, unsigned int namings,
		   struct graft_arena *arena, struct graft_cdi_choice *choice, struct graft_error *err);

#endif
