/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks_plan: the hooks of a specification that make links and refresh the loader's cache, as a plan. Whoever can apply that to the container's root before it starts needs no hook
 * (docs/decisions/0022-hooks-as-edits.md). Pure.
 */
#ifndef GRAFT_PLAN_HOOKS_PLAN_H
#define GRAFT_PLAN_HOOKS_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi.h"
#include "host/image.h"
#include "host/mounted_libraries.h"
#include "plan/plan.h"

struct graft_hook_link {
	const char *path; /* where it is, absolute in the container */
	const char *says;
};

/* What hooks ask for; in an arena. */
struct graft_hook_work {
	struct graft_hook_link *links; /* of create-symlinks, in order, each once */
	size_t n_links;
	const char **folders; /* of update-ldcache: absolute, without slashes at the end */
	size_t n_folders;
	bool ldcache; /* update-ldcache is among them */
};

/*
 * Reads the words of the createContainer hooks in `edits`. *ret_known: all of them are calls of `program`, a path, with create-symlinks or update-ldcache, the links before the
 * cache, without a timeout, no link where something is mounted, and with options that are understood here; and no hook of another stage is there. Then *ret_work is what they ask for; otherwise they must run.
 * -1: GRAFT_NO_MEMORY.
 */
int graft_hooks_read(const char *program, const struct graft_cdi_edits *edits, struct graft_arena *arena,
		     struct graft_hook_work *ret_work, bool *ret_known, struct graft_error *err);

/*
 * The plan: the links, a soname's link beside each library as ldconfig makes it, and the cache. `image` is what graft_image_inspect_loader() says. NULL: GRAFT_NO_MEMORY.
 * The caller frees it; what it says lives as long as the work, the libraries and the image.
 */
struct graft_plan *graft_hooks_plan(const struct graft_hook_work *work, const struct graft_mounted_library *libraries,
				    size_t n_libraries, const struct graft_image *image, struct graft_error *err);

#endif
