/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_container: opens target, cgroup and image of a container for configure, plan and the
 * library.
 */
#include "start/open_container.h"

#include "base/cleanup.h"
#include "base/root.h"
#include "image/inspect.h"

int graft_open_container_cgroup(const struct graft_request *request, const struct graft_target *target,
				bool require_cgroup, const struct graft_log *log, struct graft_cgroup *ret_cgroup,
				struct graft_error *err)
{
	auto_root struct graft_root own = GRAFT_ROOT_INIT;

	if (request->no_cgroups)
		return 0;
	/*
	 * Both modes use our own /proc and mounts. Unsupervised, the container's cgroup is our own:
	 * SPEC libnvidia-container 10 asks for that of our parent, looked up below the rootfs,
	 * where an image could put anything, by a number that may belong to another PID namespace.
	 */
	if (graft_root_open(&own, "/", err) < 0)
		return -1;
	return graft_cgroup_open(own.fd, target->supervised ? target->pid : 0, target->user_namespace, require_cgroup,
				 log, ret_cgroup, err);
}

int graft_open_container(const struct graft_request *request, pid_t pid, bool supervised, const char *rootfs,
			 bool require_cgroup, const struct graft_log *log, struct graft_target *ret_target,
			 struct graft_cgroup *ret_cgroup, struct graft_policy *policy, struct graft_error *err)
{
	if (graft_target_open(pid, supervised, rootfs, NULL, log, ret_target, err) < 0 ||
	    graft_open_container_cgroup(request, ret_target, require_cgroup, log, ret_cgroup, err) < 0)
		return -1;
	/*
	 * Root may change the device rules of a container with a user namespace. Without that right
	 * no cgroup was found, or changing it fails later.
	 */
	policy->user_namespace = ret_target->user_namespace && ret_cgroup->version == 0;
	return 0;
}

int graft_inspect_container(const struct graft_request *request, const struct graft_image_root *root,
			    const struct graft_log *log, struct graft_arena *arena, struct graft_image *ret_image,
			    struct graft_error *err)
{
	bool compat = request->compat_mode != GRAFT_COMPAT_DISABLED && (request->capabilities & GRAFT_CAP_COMPUTE) != 0;

	return graft_image_inspect(root, compat, log, arena, ret_image, err);
}
