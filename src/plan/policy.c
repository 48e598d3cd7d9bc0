/* SPDX-License-Identifier: Apache-2.0 */
/* policy: the JSON form of a policy, and the names of styles and hooks. */
#include <string.h>

#include "base/cleanup.h"
#include "plan/planner.h"

const char *const graft_style_names[2] = { "namespace", "oci" };
const char *const graft_hook_names[GRAFT_HOOK_BITS] = {
#define X(name, word, help) [GRAFT_HOOK_BIT_##name] = word,
	GRAFT_HOOK_LIST(X)
#undef X
};

static const struct graft_field policy_fields[] = {
	GRAFT_F_ENUM(struct graft_policy, style, graft_style_names, GRAFT_COUNT(graft_style_names), false,
		     "what kind of sink the plan is for; absent: namespace"),
	GRAFT_F_FLAGS(struct graft_policy, disabled_hooks, graft_hook_names, GRAFT_HOOK_BITS,
		      "parts of a plan that are left out, by the names of the hooks that would do them (oci)"),
	GRAFT_F_RECORD(struct graft_policy, image, &graft_image_record, "facts of the container's root"),
	GRAFT_F_STRING(struct graft_policy, bins_dir, false, "where programs go; absent: /usr/bin"),
	GRAFT_F_STRING(struct graft_policy, libs_dir, false, "where libraries go; absent: depends on the image"),
	GRAFT_F_STRING(struct graft_policy, libs32_dir, false, "where 32-bit libraries go; absent: likewise"),
	GRAFT_F_STRING(struct graft_policy, cudart_dir, false, "where the image has CUDA; absent: /usr/local/cuda"),
	GRAFT_F_BOOL(struct graft_policy, no_procfs_view, "the sink cannot mount a procfs view"),
	GRAFT_F_BOOL(struct graft_policy, user_namespace, "the container lives in a user namespace"),
	GRAFT_F_BOOL(struct graft_policy, no_new_nodes,
		     "leave out device nodes that the host lacks: nodes are bound, not created (oci)"),
	GRAFT_F_BOOL(struct graft_policy, shared,
		     "what containers with any device have in common, to be used later (oci)"),
};
const struct graft_record graft_policy_record = { "policy", sizeof(struct graft_policy), policy_fields,
						  GRAFT_COUNT(policy_fields) };

int graft_policy_disable_hook(uint32_t *hooks, const char *word, struct graft_error *err)
{
	if (strcmp(word, "all") == 0) {
		*hooks |= GRAFT_HOOK_ALL;
		return 0;
	}
	if (strcmp(word, "chmod") == 0)
		return 0;
	for (unsigned int i = 0; i < GRAFT_HOOK_BITS; i++) {
		if (strcmp(word, graft_hook_names[i]) == 0) {
			*hooks |= 1u << i;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0,
			  "unknown hook '%s' in nvcdi-disable-hooks; allowed are all, create-symlinks, update-ldcache, "
			  "enable-cuda-compat, disable-device-node-modification, update-application-profile and chmod",
			  word);
}
