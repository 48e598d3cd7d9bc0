/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_transform: moves the paths of a spec below another root (SPEC ctk-and-cdi 1.3), for a driver
 * that is visible in two places, on the host and in a container. Pure.
 */
#ifndef GRAFT_FORMATS_CDI_CDI_TRANSFORM_H
#define GRAFT_FORMATS_CDI_CDI_TRANSFORM_H

#include "formats/cdi/cdi.h"

enum graft_cdi_change_scope { GRAFT_CDI_ALL_PATHS, GRAFT_CDI_ONLY_NODES, GRAFT_CDI_ALL_BUT_NODES };

struct graft_cdi_root_change {
	const char *from, *to; /* absolute directories; NULL and "" mean "/" */
	bool in_container;     /* change the container's paths instead of the host's */
	enum graft_cdi_change_scope scope;
};

/*
 * Copies a spec, replacing each path that is `from`, or below it, by the same path below `to`.
 * Unchanged parts are shared with `spec`.
 *
 *	in			on the host			in the container
 *	device node		hostPath; if that is missing	path; a hostPath is added
 *				and path is below `from`, it	if needed to keep the node
 *				is added			of the host
 *	mount			hostPath			containerPath
 *	hook's program		all stages but startContainer	startContainer
 *	hook's arguments	stages other than those		createContainer, startContainer
 *				to the right
 *
 * Arguments of the form "A::B" are two paths. If the spec's version does not support the result, it
 * becomes the lowest version that does. Returns 0, or -1 with GRAFT_INVALID (one of the directories
 * is not absolute) or GRAFT_NO_MEMORY.
 */
int graft_cdi_spec_change_root(const struct graft_cdi_spec *spec, const struct graft_cdi_root_change *change,
			       struct graft_arena *arena, struct graft_cdi_spec *ret_spec, struct graft_error *err);

#endif
