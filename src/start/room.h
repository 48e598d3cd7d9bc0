/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room: whether a low-level runtime will find a place for files that the container can do without
 * (plan/dispensable.h). If it cannot make one mount point out of fifty, the whole start fails, so
 * mounts without a place are left out of its configuration, each with a warning.
 */
#ifndef GRAFT_START_ROOM_H
#define GRAFT_START_ROOM_H

#include "formats/cdi/cdi.h"
#include "plan/plan.h"
#include "start/start.h"

/*
 * Returns the plan without the dispensable mounts for which the container has no place: the plan
 * itself if there are none, otherwise a copy in create->arena that points into it. NULL:
 * GRAFT_NO_MEMORY.
 */
const struct graft_plan *graft_start_leave_out_edits(const struct graft_start *create, const struct graft_plan *plan,
						     struct graft_error *err);
/* Does the same with the mounts of CDI specifications. Returns 0, or -1 with GRAFT_NO_MEMORY. */
int graft_start_leave_out_mounts(const struct graft_start *create, struct graft_cdi_edits *edits,
				 struct graft_error *err);

#endif
