/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_cdi: converts plans of style OCI to container edits of a CDI specification, for containers
 * that are started later with an unknown image. Devices, mounts and variables become edits of these
 * kinds; links, the loader's cache and the driver's parameters become hooks, with the names and
 * arguments that specifications have had for years (SPEC ctk-and-cdi 4.5), so that any
 * nvidia-cdi-hook can run them. Pure: opens nothing.
 */
#ifndef GRAFT_APPLY_TO_CDI_H
#define GRAFT_APPLY_TO_CDI_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi/cdi.h"
#include "plan/plan.h"

/*
 * Arguments of the hook enable-cuda-compat, which judges an image's CUDA compatibility libraries at
 * the start of a container. All NULL: there is no such hook.
 */
struct graft_cdi_compat {
	const char *driver_version, *cuda_version; /* of this host */
	const char *directory;                     /* where the image has the libraries; NULL = the hook's default */
};

struct graft_cdi_options {
	const char *hook_path;     /* of nvidia-cdi-hook or nvidia-ctk, as seen where the specification is used */
	const char *ldconfig_path; /* for update-ldcache; NULL = the hook's default */
	struct graft_cdi_compat compat;
	bool chmod; /* the hook of that name gives directories of nodes mode 0755 */
	/*
	 * Links become mounts and nodes; the loader's cache and everything else that needs a
	 * program is left out.
	 */
	bool no_hooks;
	bool no_additional_gids;
	/*
	 * Files are mounted by the hook mount-files instead of the low-level runtime, and all
	 * hooks are joined into one (docs/decisions/0034-driver-tree.md). Only our own
	 * nvidia-cdi-hook can run it.
	 */
	bool late_mounts;
};

/*
 * Converts a plan to edits. `common` is another plan whose edits the container gets as well, so
 * that edits of both are left out here; NULL: this is the plan that others are compared with, and
 * it includes enable-cuda-compat.
 *
 * Nodes have no type and numbers: these are taken from the host where the specification is used,
 * since they change with a reboot. All lists are sorted except variables and hooks.
 *
 * Fails with GRAFT_UNSUPPORTED for an edit that no hook covers or a path that cannot be passed in a
 * hook's arguments, or with GRAFT_NO_MEMORY.
 */
int graft_plan_to_cdi(const struct graft_plan *plan, const struct graft_plan *common,
		      const struct graft_cdi_options *options, struct graft_arena *arena,
		      struct graft_cdi_edits *ret_edits, struct graft_error *err);

#endif
