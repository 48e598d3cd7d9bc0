/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join: enters the container's mount namespace and returns. setns(2) also changes the root and the
 * working directory of the process; both are restored in the end, on every path.
 *
 * Joining a user namespace first (rootless) is one-way: without privileges in the original
 * namespace the kernel does not let a process return to it. Only a dedicated process does that
 * (to_namespace.c); leaving does nothing then.
 */
#ifndef GRAFT_APPLY_NAMESPACE_JOIN_H
#define GRAFT_APPLY_NAMESPACE_JOIN_H

#include <stdbool.h>

#include "apply/namespace/target.h"
#include "base/error.h"

struct graft_join {
	const struct graft_target *target;
	int own_mount_ns_fd, root_fd, cwd_fd; /* owned */
	bool inside;
	bool one_way; /* a user namespace was joined too */
};
#define GRAFT_JOIN_INIT                                            \
	{                                                          \
		.own_mount_ns_fd = -1, .root_fd = -1, .cwd_fd = -1 \
	}

/* Opens what is needed to return. The target is borrowed. */
int graft_join_prepare(struct graft_join *ret_join, const struct graft_target *target, struct graft_error *err);
/*
 * Enters the container's namespaces; does nothing if the target is in our own. May be called again
 * after graft_join_leave().
 */
int graft_join_enter(struct graft_join *join, struct graft_error *err);
/* Returns to our own namespace, root and working directory. */
int graft_join_leave(struct graft_join *join, struct graft_error *err);
/* Closes the descriptors; leaves first if still inside. */
void graft_join_done(struct graft_join *join);
#define auto_join __attribute__((cleanup(graft_join_done)))

#endif
