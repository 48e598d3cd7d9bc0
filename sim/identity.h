/* SPDX-License-Identifier: Apache-2.0 */
/* identity: names that look random and are the same each time. */
#ifndef GRAFT_SIM_IDENTITY_H
#define GRAFT_SIM_IDENTITY_H

#include <stdint.h>

#include "base/arena.h"

/* "<prefix>xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" derived from two names and a number. NULL without memory. */
const char *sim_uuid(struct graft_arena *arena, const char *prefix, const char *host, const char *kind,
		     uint64_t number);
/* 64 bits of the same. */
uint64_t sim_hash(const char *host, const char *kind, uint64_t number);

#endif
