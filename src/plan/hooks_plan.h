/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks_plan: turns the hooks of a specification into a plan. A caller that can apply the plan to
 * the container's root before it starts needs no hook, or one for only what must wait for the
 * mounts (docs/decisions/0022-hooks-as-edits.md). Pure.
 */
#ifndef GRAFT_PLAN_HOOKS_PLAN_H
#define GRAFT_PLAN_HOOKS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/string_map.h"
#include "formats/cdi/cdi.h"
#include "formats/oci_spec.h"
#include "host/mounted_libraries.h"
#include "image/inspect.h"
#include "plan/hook_edits.h"
#include "plan/plan.h"

/* What hooks request; in an arena. */
struct graft_hook_work {
	struct graft_hook_link *links; /* of create-symlinks, in order, each once */
	size_t n_links;
	struct graft_string_map link_paths; /* their indices */
	const char **folders;               /* of update-ldcache: absolute, without trailing slashes */
	size_t n_folders;
	bool ldcache; /* update-ldcache is among them */
	/*
	 * Where enable-cuda-compat looks, absolute and clean; NULL = it is absent, or does nothing
	 */
	const char *compat_root;
	const char *driver_version, *cuda_version; /* of the host, for enable-cuda-compat; either may be NULL */
	bool params;                               /* disable-device-node-modification is among them */
	uint64_t gpus;                             /* update-application-profile: its mask; 0 = nothing to do */
};

/* The hook for limits of GPU memory, and the variables of a container that ask for them. */
#define GRAFT_MEMORY_HOOK    "apply-cuda-memory-limits"
#define GRAFT_MEMORY_LIMIT   "NVIDIA_GPU_MEMORY_LIMIT"
#define GRAFT_MEMORY_REQUEST "NVIDIA_GPU_MEMORY_REQUEST"

/*
 * Parses the createContainer hooks in `edits`, whose nodes have their numbers, for a container of
 * `spec`. *ret_known is true if all hooks are calls of `program` (a path) with hooks and options
 * that are supported here, if they depend on nothing that exists only when they run, and if there
 * are no hooks of another stage, except for that of memory limits in a container that has none of
 * its variables. Then *ret_work is what they request; otherwise the hooks must run.
 * Hooks of the image (graft_cdi_hook_is_of_image()) come later and do not count.
 * Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_hooks_read(const char *program, const struct graft_cdi_edits *edits, const struct graft_oci_spec *spec,
		     struct graft_arena *arena, struct graft_hook_work *ret_work, bool *ret_known,
		     struct graft_error *err);

/* Facts of the host and the image for the plan. */
struct graft_hook_facts {
	const struct graft_mounted_library *libraries; /* of the specification; for update-ldcache */
	size_t n_libraries;
	/* graft_image_inspect_loader(), and the compatibility libraries in compat_root */
	const struct graft_image *image;
	const char *params; /* graft_params_for_container(); NULL = no change needed */
};

/*
 * Makes the plan: the links, a soname link next to each library as ldconfig makes it, the cache,
 * the driver's parameters, and the profile for EGL. Returns NULL with GRAFT_NO_MEMORY. The caller
 * frees the plan; its strings live as long as the work and the facts.
 */
struct graft_plan *graft_hooks_plan(const struct graft_hook_work *work, const struct graft_hook_facts *facts,
				    struct graft_error *err);

#endif
