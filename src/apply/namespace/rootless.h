/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootless: runs work in a separate process, for a caller that must join a user namespace to have
 * any rights. Joining is one-way, and the caller must keep its identity. The child executes no
 * program; it sends its result and exits.
 */
#ifndef GRAFT_APPLY_NAMESPACE_ROOTLESS_H
#define GRAFT_APPLY_NAMESPACE_ROOTLESS_H

#include "base/error.h"

struct graft_rootless_child; /* the child's end */

/*
 * In the child: announces a step to the parent and waits for its answer. Has the type of
 * graft_namespace_options.step; `arg` is the child.
 */
int graft_rootless_step(void *arg, const char *step, struct graft_error *err);

/*
 * Runs `work` in a child. `step` (may be NULL) is called in the parent for each
 * graft_rootless_step(). The caller receives the child's result and error, without the error's own
 * hint. A child that exits without a result is a failure.
 */
int graft_rootless_run(int (*work)(void *arg, struct graft_rootless_child *child, struct graft_error *err), void *arg,
		       int (*step)(void *step_arg, const char *step, struct graft_error *err), void *step_arg,
		       struct graft_error *err);

#endif
