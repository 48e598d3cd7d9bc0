/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_names: which devices of a host the names of a claim mean. SECURITY: the rules are those of
 * selection (plan/select.h) itself, so that no way to write a name gives a device that is not held.
 * Pure.
 */
#ifndef GRAFT_LEASE_LEASE_NAMES_H
#define GRAFT_LEASE_LEASE_NAMES_H

#include "lease/lease_choice.h"

/*
 * Replaces the names of a claim of the kind NAMED by those that graft_lease_choose() compares: an
 * index, "0:1", a UUID as the driver prints it, or "all". Other claims stay as they are. Returns -1
 * with GRAFT_UNKNOWN_DEVICE for a name that means no device of the host, or one that cannot be held
 * because its UUID is not known; or with GRAFT_NO_MEMORY.
 */
int graft_lease_names_resolve(const struct graft_lendable *host, struct graft_arena *arena, struct graft_claim *claim,
			      struct graft_error *err);

#endif
