/* SPDX-License-Identifier: Apache-2.0 */
/* identity: identifiers that look random but are reproducible. */
#ifndef GRAFT_SIM_IDENTITY_H
#define GRAFT_SIM_IDENTITY_H

#include <stdint.h>

#include "base/arena.h"

/*
 * Derives "<prefix>xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" from two names and a number. Returns a
 * string in the arena, or NULL if out of memory.
 */
const char *sim_uuid(struct graft_arena *arena, const char *prefix, const char *host, const char *kind,
		     uint64_t number);
/* Derives 64 bits from the same input. */
uint64_t sim_hash(const char *host, const char *kind, uint64_t number);

#endif
