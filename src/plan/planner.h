/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner: (inventory, request, policy) -> plan. Pure: no file is opened, no clock or environment is read; the same
 * values give the same bytes. SPEC libnvidia-container 9 for order, flags and targets.
 */
#ifndef GRAFT_PLAN_PLANNER_H
#define GRAFT_PLAN_PLANNER_H

#include "base/error.h"
#include "base/log.h"
#include "host/image.h"
#include "host/inventory.h"
#include "plan/plan.h"
#include "plan/select.h"
#include "request/request.h"

/*
 * What kind of sink a plan is for.
 *   NAMESPACE  a container that is already there (prestart hook, CLI): targets by the image's distribution, its own view of the driver's procfs, nodes
 *              bound from the host
 *   OCI        a container whose configuration is still to be read by a low-level runtime (SPEC runtime-and-hook 7): everything at the host's paths
 *              less the driver root, nodes made by that runtime, no view of procfs
 */
enum graft_style { GRAFT_STYLE_NAMESPACE, GRAFT_STYLE_OCI };
extern const char *const graft_style_names[2]; /* namespace oci */

/*
 * Hooks that an administrator may switch off (nvcdi-disable-hooks, SPEC 7.7). Here they are no programs but parts of a plan: what the hook would have
 * done is left out. Style OCI only.
 */
#define GRAFT_HOOK_LIST(X)                                                                               \
	X(SYMLINKS, "create-symlinks", "links of libraries and of DRM nodes")                            \
	X(LDCACHE, "update-ldcache", "the loader's cache")                                               \
	X(COMPAT, "enable-cuda-compat", "the image's CUDA forward-compatibility libraries")              \
	X(PARAMS, "disable-device-node-modification", "telling the driver's libraries to make no nodes") \
	X(PROFILE, "update-application-profile", "telling EGL which GPUs there are")

enum graft_hook_bit {
#define X(name, word, help) GRAFT_HOOK_BIT_##name,
	GRAFT_HOOK_LIST(X)
#undef X
	    GRAFT_HOOK_BITS
};
enum graft_hook {
#define X(name, word, help) GRAFT_HOOK_##name = 1u << GRAFT_HOOK_BIT_##name,
	GRAFT_HOOK_LIST(X)
#undef X
	    GRAFT_HOOK_ALL = (1u << GRAFT_HOOK_BITS) - 1u,
};
extern const char *const graft_hook_names[GRAFT_HOOK_BITS]; /* by bit number */
/*
 * Adds the bit of a word of nvcdi-disable-hooks: one of the names, "all", or "chmod", which is never there. -1: GRAFT_INVALID, naming the word and the
 * allowed ones; nothing is added then.
 */
int graft_policy_disable_hook(uint32_t *hooks, const char *word, struct graft_error *err);

/* What the sink needs and may; not the container's choice. NULL strings = the defaults of SPEC 9.2. */
struct graft_policy {
	enum graft_style style;
	uint32_t disabled_hooks;  /* bits GRAFT_HOOK_* */
	struct graft_image image; /* of the container's root; zeroed = unknown: a non-Debian glibc image */
	const char *bins_dir, *libs_dir, *libs32_dir, *cudart_dir; /* style NAMESPACE */
	bool no_procfs_view;                                       /* sinks that cannot mount a procfs view (CDI) */
	bool user_namespace;                                       /* the container lives in a user namespace */
	bool no_new_nodes; /* nodes are bound from the host, not made: in a user namespace (style OCI) */
	/*
	 * The plan is of what containers with any device of this host have in common: none is selected yet, but one will be, and the container is started later, when
	 * the driver's parameters may have changed (CDI specifications). Style OCI.
	 */
	bool shared;
};
extern const struct graft_record graft_policy_record;

/*
 * Evaluates all requirements for the selection (SPEC 8: each selected GPU, then MIG devices, else once without a device). Returns 0 when
 * all hold; -1 with GRAFT_REQUIREMENT; 1 when NVML facts are needed first: *ret_missing gets the bits (GRAFT_NVML_ARCH, BRAND, CUDA).
 */
int graft_plan_check_requirements(const struct graft_inventory *inventory, const struct graft_request *request,
				  const struct graft_selection *selection, unsigned int *ret_missing,
				  struct graft_error *err);

/* Makes the plan. The selection must come from the same inventory. Strings are copied: the plan stands alone. */
int graft_plan_make(const struct graft_inventory *inventory, const struct graft_request *request,
		    const struct graft_policy *policy, const struct graft_selection *selection,
		    struct graft_plan **ret_plan, struct graft_error *err);

#endif
