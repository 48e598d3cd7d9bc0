/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_cdi: plans of style OCI as container edits of a CDI specification, for whoever starts a container later, with an image that nobody has seen yet. What is a
 * device, a mount or a variable becomes that; links, the loader's cache and the driver's parameters become hooks, by the names and arguments that specifications have had
 * for years (SPEC ctk-and-cdi 4.5), so that any nvidia-cdi-hook can run them. Pure: nothing is opened.
 */
#ifndef GRAFT_APPLY_TO_CDI_H
#define GRAFT_APPLY_TO_CDI_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi.h"
#include "plan/plan.h"

/* How an image's CUDA compatibility libraries are judged when it is known: arguments of the hook enable-cuda-compat. All NULL: there is no such hook. */
struct graft_cdi_compat {
	const char *driver_version, *cuda_version; /* of this host */
	const char *directory;                     /* where the image has the libraries; NULL = the hook's default */
};

struct graft_cdi_options {
	const char *hook_path;     /* of nvidia-cdi-hook or nvidia-ctk, as the one who uses the specification sees it */
	const char *ldconfig_path; /* for update-ldcache; NULL = the hook's default */
	struct graft_cdi_compat compat;
	bool chmod; /* directories of nodes get mode 0755, by the hook of that name */
	bool
	    no_hooks; /* links become mounts and nodes; the loader's cache and all else that needs a program is left out */
	bool no_additional_gids;
};

/*
 * The edits of a plan. `common`: another plan whose edits the container gets as well, so that what both have is left out here; NULL: this is the plan that others
 * are compared with, and enable-cuda-compat goes with it.
 *
 * Nodes come without type and numbers: whoever uses the specification takes them from the host, where they change with a reboot. Lists are sorted but for variables and
 * hooks.
 *
 * -1: GRAFT_UNSUPPORTED for an edit that no hook does, or a path that cannot be said in a hook's arguments; GRAFT_NO_MEMORY.
 */
int graft_plan_to_cdi(const struct graft_plan *plan, const struct graft_plan *common,
		      const struct graft_cdi_options *options, struct graft_arena *arena,
		      struct graft_cdi_edits *ret_edits, struct graft_error *err);

#endif
