/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_versions: what the two versions of cgroup offer to apply/cgroup.c, and to nobody else.
 *
 * Each `allow` changes nothing when it fails; status GRAFT_PERMISSION means that the caller has no rights. Each appends
 * what it did to cgroup->changes, which only this header's users look into.
 */
#ifndef GRAFT_APPLY_CGROUP_VERSIONS_H
#define GRAFT_APPLY_CGROUP_VERSIONS_H

#include "apply/cgroup.h"

struct graft_cgroup_change {
	struct graft_device_rule denied; /* v1: what devices.deny takes back */
	uint32_t attach_flags;           /* v2: flags of the attachment */
	int old_fd, new_fd;              /* v2: the program before and the one in its place; owned; v1: -1 */
};

/* Room for `n` more changes, all of them empty (descriptors -1), behind those there are; NULL when out of memory. */
struct graft_cgroup_change *graft_cgroup_changes_grow(struct graft_cgroup *cgroup, size_t n);

/* Writes devices.allow for every rule that devices.list does not grant. */
int graft_cgroup_v1_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
			  const struct graft_log *log, struct graft_error *err);
/* The same for the programs of v2. */
int graft_cgroup_v2_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
			  const struct graft_log *log, struct graft_error *err);
/* Takes one change back. 0 or -errno. */
int graft_cgroup_v1_undo(const struct graft_cgroup *cgroup, const struct graft_cgroup_change *change);
/* The same for one swapped program of v2. */
int graft_cgroup_v2_undo(const struct graft_cgroup *cgroup, const struct graft_cgroup_change *change);

/*
 * What devices.list (NUL-terminated) says about `rule`. Returns whether one of its lines grants all of it; *ret_exact is what the
 * line of exactly this device grants, which is what devices.deny must leave.
 */
bool graft_cgroup_v1_is_allowed(const char *list, const struct graft_device_rule *rule,
				struct graft_device_rule *ret_exact);

#endif
