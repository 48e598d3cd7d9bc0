/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_transform: the paths of a spec below another root (SPEC ctk-and-cdi 1.3): for a driver that is seen at two places, on the host and in a container. Pure. */
#ifndef GRAFT_FORMATS_CDI_TRANSFORM_H
#define GRAFT_FORMATS_CDI_TRANSFORM_H

#include "formats/cdi.h"

struct graft_cdi_root_change {
	const char *from, *to; /* directories, absolute; NULL and "" are "/" */
	bool in_container;     /* the paths that containers see are meant; else those of the host */
};

/*
 * Gives a copy in which each path that is `from`, or below it, is at the same place below `to`. What has not changed is shared with `spec`.
 *
 *	of			on the host			in the container
 *	device node		hostPath; where that is missing	path; what was the same place on the host stays it,
 *				and path is below `from`, it	by a new hostPath
 *				is added
 *	mount			hostPath			containerPath
 *	hook's program		all stages but startContainer	startContainer
 *	hook's arguments	stages in neither of the	createContainer, startContainer
 *				two to the right
 *
 * Arguments of the form "A::B" are two paths. Where the change uses what the spec's version does not have, the version becomes the lowest that has.
 * -1: GRAFT_INVALID, one of the directories is not absolute; GRAFT_NO_MEMORY.
 */
int graft_cdi_spec_change_root(const struct graft_cdi_spec *spec, const struct graft_cdi_root_change *change,
			       struct graft_arena *arena, struct graft_cdi_spec *ret_spec, struct graft_error *err);

#endif
