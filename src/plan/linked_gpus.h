/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linked_gpus: which of the available GPUs to take together: those with the best links to each
 * other, so that those that remain stay well connected (SPEC kubernetes 6.7). Pure.
 */
#ifndef GRAFT_PLAN_LINKED_GPUS_H
#define GRAFT_PLAN_LINKED_GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/pci_tree.h"

#define GRAFT_LINKED_GPUS_MAX 32u /* a set is a word of 32 bits */

/* The available GPUs, in order of preference if the links do not decide. */
struct graft_linked_gpus {
	const struct graft_pci_place *const *places; /* NULL: the GPU's place is not known */
	size_t n;                                    /* 1 to GRAFT_LINKED_GPUS_MAX */
	bool switches;                               /* all GPUs are linked to each other alike */
	uint32_t size;                               /* how many to take: 1 to n */
	uint32_t required;                           /* bits of those that must be taken */
};

/*
 * Chooses a set. *ret_set has the bits of its GPUs; 0: no set of `size` GPUs contains all required
 * ones. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_choose_linked(const struct graft_linked_gpus *gpus, struct graft_arena *arena, uint32_t *ret_set,
			struct graft_error *err);

#endif
