/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_devices: which devices a CDI specification of a host has, and what they are called (SPEC ctk-and-cdi 4.6, 4.9). Pure. A device is a GPU, a MIG device, or
 * an IMEX channel, each with as many names as strategies were asked for.
 */
#ifndef GRAFT_PLAN_CDI_DEVICES_H
#define GRAFT_PLAN_CDI_DEVICES_H

#include "base/arena.h"
#include "base/error.h"
#include "host/inventory.h"
#include "plan/select.h"

/* How devices are called: bit, word, help. */
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
extern const char *const graft_cdi_naming_words[GRAFT_CDI_NAMINGS]; /* by bit number */

struct graft_cdi_choice {
	struct graft_selection
	    selection;      /* the GPU, or the MIG device and its GPU; neither: the driver without a GPU */
	const char **names; /* none: no strategy has a name for it */
	size_t n_names;
};

struct graft_cdi_choices {
	struct graft_cdi_choice *items; /* each device once */
	size_t n;
};

/*
 * The devices that ids mean, in their order: "all", an index, a UUID, a PCI address, a MIG index "0:1" or UUID, "none". The first of "all" and "none" decides: "all" is
 * every GPU that programs can run on, then every MIG device; "none" is one device of that name without a GPU. -1: GRAFT_INVALID "identifier is not a valid
 * UUID or index: ..."; GRAFT_UNKNOWN_DEVICE, with the words of NVML that scripts look for; GRAFT_NO_MEMORY.
 */
int graft_cdi_choose(const struct graft_inventory *inventory, const char *const *ids, size_t n_ids,
		     unsigned int namings, struct graft_arena *arena, struct graft_cdi_choices *ret_choices,
		     struct graft_error *err);

/* Facts that only NVML has (bits of enum graft_nvml_fact) and without which ids cannot be decided, or names would be missing. */
int graft_cdi_missing_facts(const struct graft_inventory *inventory, const char *const *ids, size_t n_ids,
			    unsigned int namings, struct graft_arena *arena, unsigned int *ret_facts,
			    struct graft_error *err);

/* The names of a GPU; `mig`: of that MIG device of it; NULL: of the GPU itself. Those that are not known, or that no device may have, are left out. */
int graft_cdi_name(const struct graft_gpu *gpu, const struct graft_mig_device *mig, unsigned int namings,
		   struct graft_arena *arena, struct graft_cdi_choice *choice, struct graft_error *err);

#endif
