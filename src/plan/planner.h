/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner: (inventory, request, policy) -> plan. Pure: it opens no file and reads no clock or
 * environment; the same values give the same bytes. SPEC libnvidia-container 9 for order, flags and
 * targets.
 */
#ifndef GRAFT_PLAN_PLANNER_H
#define GRAFT_PLAN_PLANNER_H

#include "base/error.h"
#include "base/log.h"
#include "host/inventory.h"
#include "image/inspect.h"
#include "plan/plan.h"
#include "plan/select.h"
#include "request/request.h"

/*
 * What kind of sink a plan is for.
 *
 *   NAMESPACE  an existing container (prestart hook, CLI): targets depend on the image's
 *              distribution, the driver's procfs has a private view, nodes are bound from the host
 *   OCI        a container whose configuration a low-level runtime is still to read
 *              (SPEC runtime-and-hook 7): everything at the host's paths without the driver root,
 *              nodes are made by that runtime, no view of procfs
 */
enum graft_style { GRAFT_STYLE_NAMESPACE, GRAFT_STYLE_OCI };
extern const char *const graft_style_names[2]; /* namespace oci */

/*
 * Hooks that an administrator may disable (nvcdi-disable-hooks, SPEC runtime-and-hook 7.7). Here
 * they are not programs but parts of a plan: the work of a disabled hook is left out. Style OCI
 * only.
 */
#define GRAFT_HOOK_LIST(X)                                                                                  \
	X(SYMLINKS, "create-symlinks", "links of libraries and of DRM nodes")                               \
	X(LDCACHE, "update-ldcache", "the loader's cache")                                                  \
	X(COMPAT, "enable-cuda-compat", "the image's CUDA forward-compatibility libraries")                 \
	X(PARAMS, "disable-device-node-modification", "keeping the driver's libraries from creating nodes") \
	X(PROFILE, "update-application-profile", "telling EGL which GPUs the container has")

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
extern const char *const graft_hook_names[GRAFT_HOOK_BITS]; /* indexed by bit number */
/*
 * Adds the bit for an item of nvcdi-disable-hooks: one of the names, "all", or "chmod", which never
 * exists. Returns -1 with GRAFT_INVALID, naming the item and the allowed ones, and adds nothing.
 */
int graft_policy_disable_hook(uint32_t *hooks, const char *word, struct graft_error *err);

/*
 * What the sink needs and may do; not the container's choice. NULL strings mean the defaults of
 * SPEC libnvidia-container 9.2.
 */
struct graft_policy {
	enum graft_style style;
	uint32_t disabled_hooks;  /* bits GRAFT_HOOK_* */
	struct graft_image image; /* of the container's root; zeroed = unknown: a glibc image that is not Debian's */
	const char *bins_dir, *libs_dir, *libs32_dir, *cudart_dir; /* style NAMESPACE */
	bool no_procfs_view;                                       /* the sink cannot mount a procfs view (CDI) */
	bool user_namespace;                                       /* the container is in a user namespace */
	bool no_new_nodes; /* nodes are bound from the host, not made: in a user namespace (style OCI) */
	/*
	 * The plan is the common part of a CDI specification: what every container gets that has a
	 * device of this host. No device is selected, and the driver's parameters may have changed
	 * when a container starts. Style OCI.
	 */
	bool shared;
};
extern const struct graft_record graft_policy_record;

/*
 * Evaluates all requirements for the selection (SPEC libnvidia-container 8: each selected GPU, then
 * MIG devices, else once without a device). Returns 0 if all hold; -1 with GRAFT_REQUIREMENT or
 * GRAFT_EXPRESSION; 1 if NVML facts are needed first, with their bits in *ret_missing
 * (GRAFT_NVML_ARCH, BRAND, CUDA).
 */
int graft_plan_check_requirements(const struct graft_inventory *inventory, const struct graft_request *request,
				  const struct graft_selection *selection, unsigned int *ret_missing,
				  struct graft_error *err);

/*
 * The capabilities of which a container needs at least one to get a driver-level node of this path,
 * or the driver's programs and sockets of this class; 0 = needs none.
 */
unsigned int graft_plan_node_capabilities(const char *path);
unsigned int graft_plan_binary_capabilities(enum graft_class class_);

/*
 * Makes the plan. The selection must come from the same inventory. Strings are copied, so the plan
 * is independent of its inputs. The caller frees it. Returns -1 with the error of the rule that
 * failed, with GRAFT_NO_DRIVER, or with GRAFT_NO_MEMORY.
 */
int graft_plan_make(const struct graft_inventory *inventory, const struct graft_request *request,
		    const struct graft_policy *policy, const struct graft_selection *selection,
		    struct graft_plan **ret_plan, struct graft_error *err);

#endif
