/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks_as_edits: turns the hooks of CDI specifications into edits of the container's root
 * (docs/decisions/0022-hooks-as-edits.md).
 */
#ifndef GRAFT_START_HOOKS_AS_EDITS_H
#define GRAFT_START_HOOKS_AS_EDITS_H

#include "formats/cdi/cdi.h"
#include "image/inspect.h"
#include "plan/plan.h"
#include "start/start.h"

/* A container's image, which is read while the specifications are. Must not be moved. */
struct cdi_image {
	bool there; /* false: the root is mounted later */
	struct graft_image_root root;
	struct graft_reader reader;
};
#define CDI_IMAGE_INIT                                                     \
	{                                                                  \
		.root = GRAFT_IMAGE_ROOT_INIT, .reader = GRAFT_READER_INIT \
	}
/*
 * Opens the image and starts to read it; release with cdi_image_done(). -1: GRAFT_NO_MEMORY, and as
 * graft_image_start_loader().
 */
int cdi_image_start(const struct graft_start *create, struct cdi_image *image, struct graft_error *err);
void cdi_image_done(struct cdi_image *image);
#define auto_cdi_image __attribute__((cleanup(cdi_image_done)))

struct cdi_planned {
	struct graft_plan *plan; /* NULL: the hooks have to run */
	struct graft_image image;
	const char **seen; /* sources of mounts that were found to exist */
	size_t n_seen;
};

/*
 * Replaces the hooks of `edits` by a plan if everything that they do is understood. The plan is
 * applied to the root, as far as possible before the low-level runtime starts; the hooks are
 * removed from `edits`, except for those of the image. A root that is mounted later keeps its
 * hooks. Changes nothing outside `edits` and `create`. The caller frees the plan. -1:
 * GRAFT_NO_MEMORY, and as graft_reader_ask() and graft_params_for_container().
 */
int cdi_plan_hooks(struct graft_start *create, struct cdi_image *image, struct graft_cdi_edits *edits,
		   struct cdi_planned *ret_planned, struct graft_error *err);

#endif
