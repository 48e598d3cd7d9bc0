/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join: into the container's mount namespace and back. setns(2) moves root and working directory of the process along; both
 * are what they were at the end, on every path.
 *
 * Joining a user namespace first (rootless) is a way without return: the kernel lets nobody back into the namespace he came from without rights
 * there. Only a process of its own does that (to_namespace.c); leaving does nothing then.
 */
#ifndef GRAFT_APPLY_JOIN_H
#define GRAFT_APPLY_JOIN_H

#include <stdbool.h>

#include "apply/target.h"
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

/* Opens what is needed to come back. The target is borrowed. */
int graft_join_prepare(struct graft_join *ret_join, const struct graft_target *target, struct graft_error *err);
/* Enters; nothing to do where the target is in our own namespace. May be repeated after graft_join_leave(). */
int graft_join_enter(struct graft_join *join, struct graft_error *err);
/* Back to our own namespace, root and working directory. */
int graft_join_leave(struct graft_join *join, struct graft_error *err);
/* Closes; leaves first if still inside. */
void graft_join_done(struct graft_join *join);
#define auto_join __attribute__((cleanup(graft_join_done)))

#endif
