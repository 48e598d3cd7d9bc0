/* SPDX-License-Identifier: Apache-2.0 */
/* difference: what a plan does beyond another one, for callers that give a container its parts one after the other. */
#ifndef GRAFT_PLAN_DIFFERENCE_H
#define GRAFT_PLAN_DIFFERENCE_H

#include "base/error.h"
#include "plan/plan.h"

/*
 * The edits of `after` that `before` (NULL = an empty plan) has not, in their order. Edits are the same when all that is applied is; why they are there does
 * not count. The plan that comes of it is released with graft_plan_free(); its strings are those of `after`, which must live on. Pure. -1:
 * GRAFT_NO_MEMORY.
 */
int graft_plan_difference(const struct graft_plan *before, const struct graft_plan *after, struct graft_plan **ret_plan,
			  struct graft_error *err);

#endif
