/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_to_edits: divides a plan between the low-level runtime and Graft. For src/apply, src/start
 * and tests.
 */
#ifndef GRAFT_APPLY_OCI_PLAN_TO_EDITS_H
#define GRAFT_APPLY_OCI_PLAN_TO_EDITS_H

#include "apply/oci/to_oci.h"
#include "base/arena.h"

/*
 * Converts a plan into container edits and a plan of the rest, which neither edits nor a runtime
 * can do (NULL if nothing is left). Everything is in the arena. Pure: opens nothing.
 */
int graft_plan_to_edits(const struct graft_plan *plan, const struct graft_oci_options *options,
			struct graft_arena *arena, struct graft_cdi_edits *ret_edits, struct graft_plan **ret_rest,
			struct graft_error *err);

/* Returns the edit of that kind for the device of `like`; NULL if there is none. */
const struct graft_edit *oci_find_of_device(const struct graft_plan *plan, enum graft_edit_kind kind,
					    const struct graft_edit *like);
/*
 * Adds a createContainer hook: `program` is the path of nvidia-cdi-hook or nvidia-ctk, `name` one
 * of its hooks. Returns it with the arguments up to the name; NULL: no memory.
 */
struct graft_cdi_hook *oci_begin_hook(const char *program, const char *name, struct graft_arena *arena,
				      struct graft_cdi_edits *edits);

/* Returns a plan without edits, for a part of `plan`; NULL: no memory. */
struct graft_plan *oci_new_rest(const struct graft_plan *plan, struct graft_arena *arena);
/* Adds an edit, in the form that the container's root gets. Returns -1 if out of memory. */
int oci_add_rest(const struct graft_edit *edit, struct graft_arena *arena, struct graft_plan *rest);

#endif
