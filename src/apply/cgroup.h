/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: device rules of one container, on cgroup v1 (devices.allow) or v2 (its BPF_PROG_TYPE_CGROUP_DEVICE
 * program), decided per container from /proc/PID/cgroup and mountinfo (SPEC libnvidia-container 10).
 *
 * v2: all rules go into one new program: the rules, then the instructions of the one that is there; it takes that
 * one's place with BPF_F_REPLACE (Linux 5.6) so that there is no moment with more or fewer rights; older kernels attach the new
 * one before detaching the old. No program attached = everything is allowed already = nothing to do.
 */
#ifndef GRAFT_APPLY_CGROUP_H
#define GRAFT_APPLY_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"

struct graft_device_rule {
	uint32_t major, minor;
	bool read, write; /* mknod is never granted */
};

struct graft_cgroup {
	int version; /* 1, 2; 0 = none: rules are skipped (user namespace, no rights), already logged */
	int dir_fd;  /* the container's cgroup directory */
	char path[4096];
	int undo_program_fd; /* v2: the program that was replaced; -1 = none */
};
#define GRAFT_CGROUP_INIT                                         \
	{                                                         \
		.version = 0, .dir_fd = -1, .undo_program_fd = -1 \
	}

/*
 * Finds the devices cgroup of `pid`, read through `proc_root_fd` (an O_PATH descriptor of "/" or of a container's root
 * whose /proc is used). `required`: failing is an error instead of a skip with one log line. Must be called before the
 * container's namespaces are joined. Error texts of SPEC 10.
 */
int graft_cgroup_open(int proc_root_fd, pid_t pid, bool user_namespace, bool required, const struct graft_log *log,
		      struct graft_cgroup *ret_cgroup, struct graft_error *err);
/* Allows all rules at once. */
int graft_cgroup_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
		       const struct graft_log *log, struct graft_error *err);
/* Takes back what graft_cgroup_allow() did (v1: devices.deny of rules that were not allowed before; v2: the old program again). */
void graft_cgroup_undo(struct graft_cgroup *cgroup, const struct graft_log *log);
void graft_cgroup_close(struct graft_cgroup *cgroup);
#define auto_cgroup __attribute__((cleanup(graft_cgroup_close)))

#endif
