/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks_plan: the hooks of a specification as a plan. Whoever can apply that to the container's root before it starts needs no hook, or one that only does what must wait for
 * the mounts (docs/decisions/0022-hooks-as-edits.md). Pure.
 */
#ifndef GRAFT_PLAN_HOOKS_PLAN_H
#define GRAFT_PLAN_HOOKS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/string_map.h"
#include "formats/cdi.h"
#include "formats/oci_spec.h"
#include "host/image.h"
#include "host/mounted_libraries.h"
#include "plan/hook_edits.h"
#include "plan/plan.h"

/* What hooks ask for; in an arena. */
struct graft_hook_work {
	struct graft_hook_link *links; /* of create-symlinks, in order, each once */
	size_t n_links;
	struct graft_string_map link_paths; /* their indices */
	const char **folders;               /* of update-ldcache: absolute, without slashes at the end */
	size_t n_folders;
	bool ldcache; /* update-ldcache is among them */
	const char *
	    compat_root; /* where enable-cuda-compat looks, absolute and clean; NULL = it is not among them, or does nothing */
	const char *driver_version, *cuda_version; /* of the host, for enable-cuda-compat; either may be NULL */
	bool params;                               /* disable-device-node-modification is among them */
	uint64_t gpus;                             /* update-application-profile: its mask; 0 = nothing to do */
};

/*
 * Reads the words of the createContainer hooks in `edits`, whose nodes have their numbers, for a container of `spec`. *ret_known: all of them are calls of `program`, a
 * path, with hooks and options that are understood here, and what they ask for depends on nothing that is only there when they run; and no hook of another stage is there. Then
 * *ret_work is what they ask for; otherwise they must run. -1: GRAFT_NO_MEMORY.
 */
int graft_hooks_read(const char *program, const struct graft_cdi_edits *edits, const struct graft_oci_spec *spec,
		     struct graft_arena *arena, struct graft_hook_work *ret_work, bool *ret_known,
		     struct graft_error *err);

/* What the host and the image say to it. */
struct graft_hook_facts {
	const struct graft_mounted_library *libraries; /* of the specification; for update-ldcache */
	size_t n_libraries;
	const struct graft_image
	    *image;         /* graft_image_inspect_loader(), and the compatibility libraries in compat_root */
	const char *params; /* graft_params_for_container(); NULL = nothing has to be changed */
};

/*
 * The plan: the links, a soname's link beside each library as ldconfig makes it, the cache, the driver's parameters, and the profile for EGL. NULL: GRAFT_NO_MEMORY. The
 * caller frees it; what it says lives as long as the work and the facts.
 */
struct graft_plan *graft_hooks_plan(const struct graft_hook_work *work, const struct graft_hook_facts *facts,
				    struct graft_error *err);

#endif
