/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootless: work in a process of its own, for a caller that must join a user namespace to have any rights. That is a way without return, and the caller
 * shall be who he was afterwards. The child executes no program; it sends its result and ends.
 */
#ifndef GRAFT_APPLY_ROOTLESS_H
#define GRAFT_APPLY_ROOTLESS_H

#include "base/error.h"

struct graft_rootless_child; /* the child's end */

/* In the child: tells the parent that a step begins and waits for its answer. Has the form of graft_namespace_options.step; `arg` is the child. */
int graft_rootless_step(void *arg, const char *step, struct graft_error *err);

/*
 * Runs `work` in a child. `step` (may be NULL) is called in the parent for each graft_rootless_step(). The child's result, note and error become the
 * caller's. A child that ends without a result is a failure.
 */
int graft_rootless_run(int (*work)(void *arg, struct graft_rootless_child *child, int *ret_note,
				   struct graft_error *err),
		       void *arg, int (*step)(void *step_arg, const char *step, struct graft_error *err),
		       void *step_arg, int *ret_note, struct graft_error *err);

#endif
