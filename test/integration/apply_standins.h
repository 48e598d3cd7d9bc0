/* SPDX-License-Identifier: Apache-2.0 */
/* apply_standins: instead of apply/cgroup/cgroup.c and apply/loader/ldcache_refresh.c; they note their calls and fail when told to. */
#ifndef GRAFT_TEST_APPLY_STANDINS_H
#define GRAFT_TEST_APPLY_STANDINS_H

#include <stdbool.h>

#include "apply/cgroup/cgroup.h"
#include "base/error.h"

struct standin_calls {
	int cgroup_allow, cgroup_undo, ldcache_state, ldcache_refresh;
	bool cgroup_fails, ldcache_fails;
	char order[128]; /* words, in order; also the steps */
};
extern struct standin_calls standin_calls;
extern struct graft_cgroup standin_cgroup;

/* For graft_namespace_options.step. */
int standin_step(void *arg, const char *step, struct graft_error *err);

#endif
