/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_container: opens an existing container and determines what a plan for it depends on (SPEC
 * libnvidia-container 2.4, 3.5, 9.2). Changes nothing in it, and joins none of its namespaces.
 */
#ifndef GRAFT_START_OPEN_CONTAINER_H
#define GRAFT_START_OPEN_CONTAINER_H

#include <stdbool.h>
#include <sys/types.h>

#include "apply/cgroup/cgroup.h"
#include "apply/namespace/target.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/image_root.h"
#include "base/log.h"
#include "plan/planner.h"
#include "request/request.h"

/*
 * Opens the container of process `pid` with its root and its devices cgroup. `supervised`: the
 * namespaces are those of `pid`; otherwise they are the caller's own, and so is the cgroup.
 * `require_cgroup`: a cgroup that cannot be found is an error. Sets policy->user_namespace. -1: as
 * graft_target_open() and graft_cgroup_open().
 */
int graft_open_container(const struct graft_request *request, pid_t pid, bool supervised, const char *rootfs,
			 bool require_cgroup, const struct graft_log *log, struct graft_target *ret_target,
			 struct graft_cgroup *ret_cgroup, struct graft_policy *policy, struct graft_error *err);
/*
 * Opens the cgroup alone. Its version is 0 if the request or the container's user namespace leaves
 * the device rules to others.
 */
int graft_open_container_cgroup(const struct graft_request *request, const struct graft_target *target,
				bool require_cgroup, const struct graft_log *log, struct graft_cgroup *ret_cgroup,
				struct graft_error *err);
/*
 * Reads as much of the container's image as the plan for the request depends on. -1: as
 * graft_image_inspect().
 */
int graft_inspect_container(const struct graft_request *request, const struct graft_image_root *root,
			    const struct graft_log *log, struct graft_arena *arena, struct graft_image *ret_image,
			    struct graft_error *err);

#endif
