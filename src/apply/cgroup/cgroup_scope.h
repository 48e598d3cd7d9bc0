/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_scope: a cgroup of our own below the current one, in which only allowed GPUs can be opened
 * and, on request, only allowed MIG instances. Access to other devices does not change. It is not
 * removed at the end: a later process that finds it empty does that.
 */
#ifndef GRAFT_APPLY_CGROUP_CGROUP_SCOPE_H
#define GRAFT_APPLY_CGROUP_CGROUP_SCOPE_H

#include "apply/cgroup/cgroup.h"

#define GRAFT_SCOPE_GPU_MAJOR 195u
#define GRAFT_SCOPE_GPU_MAX   253u /* larger minors do not belong to GPUs */
/* The driver numbers the instances of 32 GPUs and a few other rights, up to 4323. */
#define GRAFT_SCOPE_CAPS_MAX 4607u

struct graft_cgroup_scope {
	const struct graft_device_rule *rules; /* exceptions to what the scope forbids */
	size_t n_rules;
	uint32_t caps_major; /* the major of MIG instances' nodes, which are forbidden as well; 0: not forbidden */
};

/* Determines where it will be. Strings are in the arena. Returns -1 like graft_cgroup_find(). */
int graft_cgroup_scope_place(int proc_root_fd, const char *name, struct graft_arena *arena,
			     struct graft_cgroup_place *ret_place, struct graft_error *err);
/*
 * Makes it, forbids all GPUs and instances except those of the rules, and moves this process into
 * it. Returns -1 with GRAFT_CGROUP.
 */
int graft_cgroup_scope_enter(const struct graft_cgroup_place *place, const struct graft_cgroup_scope *scope,
			     const struct graft_log *log, struct graft_error *err);
/* Removes it if no process is in it. */
void graft_cgroup_scope_remove(const struct graft_cgroup_place *place);

#endif
