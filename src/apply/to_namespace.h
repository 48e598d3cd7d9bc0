/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_namespace: applies a plan to a container's mount namespace, by descriptors only (docs/decisions/0004-mount-core.md).
 *
 *   open every source on the host (open_tree(2) clone, verified by fstat)   |  before the container is touched
 *   ---- the line: join the container's namespaces (supervised only) ----
 *   create mount points below the root, move_mount(2) descriptor to descriptor, write files, links, the loader's cache
 *
 * All or nothing: a failure undoes every step and leaves mounts and tree as they were. The caller's namespaces, umask,
 * ids, capabilities and working directory are the same afterwards.
 */
#ifndef GRAFT_APPLY_TO_NAMESPACE_H
#define GRAFT_APPLY_TO_NAMESPACE_H

#include <stdbool.h>
#include <stddef.h>

#include "apply/cgroup.h"
#include "apply/ldcache_refresh.h"
#include "apply/target.h"
#include "base/error.h"
#include "base/log.h"
#include "plan/plan.h"

struct graft_namespace_options {
	const struct graft_log *log;
	struct graft_cgroup *cgroup; /* opened by the caller; NULL or version 0 = CGROUP edits are skipped */
	/* Called before each step with its name ("mount", "ldcache"), for capability changes and --timing; may be NULL. Non-zero = failure. */
	int (*step)(void *arg, const char *step, struct graft_error *err);
	void *arg;
	bool
	    rebuild_ldcache; /* LDCACHE edits: read all libraries again, as ldconfig does, however fresh the cache looks */
	bool
	    early; /* the low-level runtime has still to mount what the plan mounts: links to it lead nowhere, and stay */
	/* The cache's state before earlier calls changed the root, where the container gets one part after the other; NULL = look now. */
	const enum graft_ldcache_state *ldcache_state;
	size_t *
	    ret_edit; /* when an edit fails, its index; untouched otherwise. May be NULL; not told through a rootless child */
};

/* *ret_prefix (may be NULL) receives "mount error" or "ldcache error" on failure. */
int graft_apply_to_namespace(const struct graft_plan *plan, struct graft_target *target,
			     const struct graft_namespace_options *options, const char **ret_prefix,
			     struct graft_error *err);

#endif
