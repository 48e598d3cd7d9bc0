/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_simplify: the last steps of making a spec, whatever it was made from (SPEC ctk-and-cdi 4.7): nothing twice, one order, one device for all. Pure. */
#ifndef GRAFT_FORMATS_CDI_SIMPLIFY_H
#define GRAFT_FORMATS_CDI_SIMPLIFY_H

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi.h"

/*
 * Takes out what is there twice, and from each device the variables, nodes, hooks and mounts that all devices get anyway, unless the device would be left with
 * none of these. Then sorts: devices by name; nodes and mounts by depth and name, those of one name as they were; groups by number. Variables and hooks keep
 * their order. Lists are made anew in the arena, so that devices may share theirs. -1: GRAFT_NO_MEMORY.
 */
int graft_cdi_simplify(struct graft_cdi_spec *spec, struct graft_arena *arena, struct graft_error *err);

/* The same order for edits alone, whose lists are sorted where they are. */
void graft_cdi_edits_sort(struct graft_cdi_edits *edits);

/*
 * Adds a device that has the edits of all others, one after the other; the last one's intelRdt. A device of that name that is there stays what it is, and nothing
 * is added. -1: GRAFT_INVALID for a name that no device may have; GRAFT_NO_MEMORY. To be simplified afterwards.
 */
int graft_cdi_add_merged(struct graft_cdi_spec *spec, const char *name, struct graft_arena *arena,
			 struct graft_error *err);

#endif
