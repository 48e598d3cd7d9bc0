/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_hooks: hooks of CDI specs as edits of the container's root (docs/decisions/0022-hooks-as-edits.md). */
#ifndef GRAFT_CLI_RUNTIME_CDI_HOOKS_H
#define GRAFT_CLI_RUNTIME_CDI_HOOKS_H

#include "cli/runtime/runtime.h"
#include "formats/cdi.h"
#include "host/image.h"
#include "plan/plan.h"

struct cdi_planned {
	struct graft_plan *plan; /* NULL: the hooks have to run */
	struct graft_image image;
	const char **seen; /* sources of mounts that are there */
	size_t n_seen;
};

/*
 * Where all that the hooks of `edits` are for is understood, it becomes a plan, which is applied to the root as far as it can be before the low-level runtime starts; the hooks
 * are taken out of the edits then. A root that is mounted later is left to the hooks as they are. Reads only. The caller frees the plan. -1: GRAFT_NO_MEMORY, and as
 * graft_image_inspect_loader() and graft_params_for_container().
 */
int cdi_plan_hooks(struct runtime_create *create, struct graft_cdi_edits *edits, struct cdi_planned *ret_planned,
		   struct graft_error *err);

#endif
