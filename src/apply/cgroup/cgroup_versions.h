/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_versions: what the two cgroup versions offer to apply/cgroup/cgroup.c, and to no other
 * file.
 *
 * A failing `allow` changes nothing; status GRAFT_PERMISSION means that the caller lacks
 * permission. Each `allow` appends what it did to cgroup->changes, which only the users of this
 * header look into.
 */
#ifndef GRAFT_APPLY_CGROUP_CGROUP_VERSIONS_H
#define GRAFT_APPLY_CGROUP_CGROUP_VERSIONS_H

#include "apply/cgroup/cgroup.h"

struct graft_cgroup_change {
	struct graft_device_rule denied; /* v1: what to write to devices.deny */
	uint32_t attach_flags;           /* v2: flags of the attachment */
	int old_fd, new_fd;              /* v2: the old program and its successor; owned; v1: -1 */
};

/*
 * Appends `n` empty changes (descriptors -1) and returns the first of them, or NULL if out of
 * memory.
 */
struct graft_cgroup_change *graft_cgroup_changes_grow(struct graft_cgroup *cgroup, size_t n);

/* Writes devices.allow for every rule that devices.list does not grant. */
int graft_cgroup_v1_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
			  const struct graft_log *log, struct graft_error *err);
/* Puts the rules into every attached program that lacks some of them. */
int graft_cgroup_v2_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
			  const struct graft_log *log, struct graft_error *err);
/*
 * Attaches a program to a new cgroup that forbids what the scope forbids, and nothing else
 * (cgroup_scope.h).
 */
struct graft_cgroup_scope;
int graft_cgroup_v2_confine(int dir_fd, const struct graft_cgroup_scope *scope, const struct graft_log *log,
			    struct graft_error *err);
/* Undoes one change. Returns 0 or -errno. */
int graft_cgroup_v1_undo(const struct graft_cgroup *cgroup, const struct graft_cgroup_change *change);
/* Restores one program. Returns 0 or -errno. */
int graft_cgroup_v2_undo(const struct graft_cgroup *cgroup, const struct graft_cgroup_change *change);

/* Determines what the cgroup now answers to each of these accesses; see graft_cgroup_look(). */
int graft_cgroup_v1_look(struct graft_cgroup *cgroup, const struct graft_device_rule *accesses, size_t n,
			 enum graft_device_answer *ret_answers, struct graft_error *err);
int graft_cgroup_v2_look(struct graft_cgroup *cgroup, const struct graft_device_rule *accesses, size_t n,
			 const struct graft_log *log, enum graft_device_answer *ret_answers, struct graft_error *err);

/*
 * Looks up `rule` in the text of devices.list (NUL-terminated). Returns whether a single line
 * grants all of it. *ret_exact receives what the line for exactly this device grants, which
 * devices.deny must leave in force.
 */
bool graft_cgroup_v1_is_allowed(const char *list, const struct graft_device_rule *rule,
				struct graft_device_rule *ret_exact);

#endif
