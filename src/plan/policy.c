/* SPDX-License-Identifier: Apache-2.0 */
/* policy: the JSON form of what a sink needs and may. */
#include "base/cleanup.h"
#include "plan/planner.h"

static const struct graft_field policy_fields[] = {
	GRAFT_F_RECORD(struct graft_policy, image, &graft_image_record, "facts of the container's root"),
	GRAFT_F_STRING(struct graft_policy, bins_dir, false, "where programs go; absent: /usr/bin"),
	GRAFT_F_STRING(struct graft_policy, libs_dir, false, "where libraries go; absent: depends on the image"),
	GRAFT_F_STRING(struct graft_policy, libs32_dir, false, "where 32-bit libraries go; absent: likewise"),
	GRAFT_F_STRING(struct graft_policy, cudart_dir, false, "where the image has CUDA; absent: /usr/local/cuda"),
	GRAFT_F_BOOL(struct graft_policy, no_procfs_view, "the sink cannot mount a procfs view"),
	GRAFT_F_BOOL(struct graft_policy, user_namespace, "the container lives in a user namespace"),
};
const struct graft_record graft_policy_record = { "policy", sizeof(struct graft_policy), policy_fields,
						  GRAFT_COUNT(policy_fields) };
