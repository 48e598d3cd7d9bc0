/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_simplify: the final steps of generating a spec, whatever its source (SPEC ctk-and-cdi 4.7):
 * remove duplicates, sort, add a device for all. Pure.
 */
#ifndef GRAFT_FORMATS_CDI_CDI_SIMPLIFY_H
#define GRAFT_FORMATS_CDI_CDI_SIMPLIFY_H

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi/cdi.h"

/*
 * Removes duplicates; also removes, from each device, the variables, nodes, hooks and mounts that
 * all devices get anyway, unless the device would be left without any of these.
 *
 * Then sorts: devices by name; nodes and mounts by depth and name, stably; groups by number.
 * Variables and hooks keep their order. New lists are allocated from the arena, so devices may
 * share theirs. Returns 0, or -1 with GRAFT_NO_MEMORY.
 */
int graft_cdi_simplify(struct graft_cdi_spec *spec, struct graft_arena *arena, struct graft_error *err);

/* Sorts container edits in the same order, in place. */
void graft_cdi_edits_sort(struct graft_cdi_edits *edits);

/*
 * Adds a device with the edits of all others, one after the other, and the last intelRdt among
 * them. If a device of that name already exists, nothing changes. Call graft_cdi_simplify()
 * afterwards. Returns 0, or -1 with GRAFT_INVALID (not a valid device name) or GRAFT_NO_MEMORY.
 */
int graft_cdi_add_merged(struct graft_cdi_spec *spec, const char *name, struct graft_arena *arena,
			 struct graft_error *err);

#endif
