/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_namespace: applies a plan to a container's mount namespace, by descriptors only
 * (docs/decisions/0004-mount-core.md).
 *
 *   open every source on the host (open_tree(2) clone, verified by fstat)   |  before the container is touched
 *   ---- the line: join the container's namespaces (supervised only) ----
 *   create mount points below the root, move_mount(2) descriptor to descriptor, write files, links, the loader's cache
 *
 * All or nothing: a failure undoes every step and leaves mounts and tree as they were. The caller's
 * namespaces, umask, ids, capabilities and working directory are the same afterwards.
 */
#ifndef GRAFT_APPLY_NAMESPACE_TO_NAMESPACE_H
#define GRAFT_APPLY_NAMESPACE_TO_NAMESPACE_H

#include <stdbool.h>
#include <stddef.h>

#include "apply/cgroup/cgroup.h"
#include "apply/loader/ldcache_refresh.h"
#include "apply/namespace/target.h"
#include "base/error.h"
#include "base/log.h"
#include "plan/plan.h"

struct graft_namespace_options {
	const struct graft_log *log;
	struct graft_cgroup *cgroup; /* opened by the caller; NULL or version 0: CGROUP edits are skipped */
	/*
	 * Called before each step with its name ("mount", "ldcache"), for capability changes and
	 * --timing; may be NULL. Non-zero means failure.
	 */
	int (*step)(void *arg, const char *step, struct graft_error *err);
	void *arg;
	/*
	 * LDCACHE edits: read all libraries again, as ldconfig does, however recent the cache
	 * looks.
	 */
	bool rebuild_ldcache;
	/*
	 * The low-level runtime has yet to mount what the plan mounts, so links to it dangle, and
	 * are kept.
	 */
	bool early;
	/*
	 * State of the cache before earlier calls changed the root, if the container gets its parts
	 * in several calls; otherwise GRAFT_LDCACHE_LOOK.
	 */
	enum graft_ldcache_state ldcache_state;
	/*
	 * SECURITY: the directory of the container in which its process will start. The low-level
	 * runtime has yet to make it if it is missing, and the console. GRAFT_UNSAFE: that would be
	 * in a directory of the host that the plan mounts. NULL: both exist. Borrowed.
	 */
	const char *cwd;
	bool hooks_follow; /* other hooks may change the image before that */
	/*
	 * What earlier calls have done to this container: we may write to the mounts that they
	 * made. NULL = nothing.
	 */
	const struct graft_plan *done;
	/*
	 * Receives the index of an edit that fails; otherwise unchanged. May be NULL; not set
	 * through a rootless child.
	 */
	size_t *ret_edit;
};

/* Applies it, wholly or not at all. -1: in the step GRAFT_STEP_MOUNT or GRAFT_STEP_LDCACHE. */
int graft_apply_to_namespace(const struct graft_plan *plan, struct graft_target *target,
			     const struct graft_namespace_options *options, struct graft_error *err);

#endif
