/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: device rules of one container, on cgroup v1 (devices.allow) or v2 (its BPF_PROG_TYPE_CGROUP_DEVICE
 * program), decided per container from /proc/PID/cgroup and mountinfo (SPEC libnvidia-container 10).
 *
 * v2: all rules go into one new program: the rules, then the instructions of the one that is there; it takes that
 * one's place with BPF_F_REPLACE (Linux 5.6) so that there is no moment with more or fewer rights; older kernels attach the new
 * one before detaching the old. No program attached = everything is allowed already = nothing to do.
 *
 * Rights only ever grow from "before" to "before and the rules"; rules that are in force already change nothing.
 *
 *	auto_cgroup struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
 *
 *	if (graft_cgroup_open(slash_fd, pid, false, false, log, &cgroup, err) < 0)
 *		return -1;
 *	if (graft_cgroup_allow(&cgroup, rules, n_rules, log, err) < 0)
 *		return -1;
 *	if (a_later_step_failed)
 *		graft_cgroup_undo(&cgroup, log);
 */
#ifndef GRAFT_APPLY_CGROUP_H
#define GRAFT_APPLY_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"

/* A character device. mknod is never granted. */
struct graft_device_rule {
	uint32_t major, minor;
	bool read, write;
};

struct graft_cgroup_change; /* one thing that can be taken back; apply/cgroup_versions.h */

struct graft_cgroup {
	int version;    /* 1, 2; 0 = none: rules are skipped (user namespace, no rights), already logged */
	int dir_fd;     /* the container's cgroup directory; owned; -1 when closed */
	bool required;  /* no rights is an error, not a skip */
	char path[512]; /* of that directory, for messages only; cut when longer */
	struct graft_cgroup_change *changes; /* what graft_cgroup_allow() did, in order; owned */
	size_t n_changes;
};
#define GRAFT_CGROUP_INIT                  \
	{                                  \
		.version = 0, .dir_fd = -1 \
	}

/*
 * Finds the devices cgroup of process `pid` (0 = the caller's own). /proc/PID/cgroup, the caller's own mountinfo and the cgroup mounts are read below `proc_root_fd`
 * (an O_PATH descriptor of "/", borrowed). Must be called before the container's namespaces
 * are joined. No rights to look, and a container in a `user_namespace` whose cgroup cannot be found, are a skip with one log line:
 * 0 with version 0; `required` makes both an error. Error texts of SPEC 10.
 */
int graft_cgroup_open(int proc_root_fd, pid_t pid, bool user_namespace, bool required, const struct graft_log *log,
		      struct graft_cgroup *ret_cgroup, struct graft_error *err);
/*
 * Allows all rules at once. Version 0 and no rules: nothing to do. No rights: one log line and 0, or an error when required.
 * A failure leaves the rights as they were.
 */
int graft_cgroup_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
		       const struct graft_log *log, struct graft_error *err);
/*
 * Takes back what graft_cgroup_allow() did, last first (v1: devices.deny of what was not allowed before; v2: the old programs again).
 * Failures are logged and do not stop it.
 */
void graft_cgroup_undo(struct graft_cgroup *cgroup, const struct graft_log *log);
/* Keeps the rights; forgets how to take them back. */
void graft_cgroup_close(struct graft_cgroup *cgroup);
#define auto_cgroup __attribute__((cleanup(graft_cgroup_close)))

#endif
