/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: device rules of one container, on cgroup v1 (devices.allow) or v2 (its
 * BPF_PROG_TYPE_CGROUP_DEVICE program). The version is determined per container from
 * /proc/PID/cgroup and mountinfo (SPEC libnvidia-container 10).
 *
 * On v2, all rules go into one new program: the rules, followed by the instructions of the attached
 * program. The new program replaces the old one with BPF_F_REPLACE (Linux 5.6), so that at no
 * moment more or fewer rights are in force; on older kernels the new program is attached before the
 * old one is detached. If no program is attached, every device is allowed already and nothing is
 * done.
 *
 * Rights only ever grow, from "before" to "before plus the rules"; rules that are in force already
 * change nothing.
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
#ifndef GRAFT_APPLY_CGROUP_CGROUP_H
#define GRAFT_APPLY_CGROUP_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"

/* A rule for a character device. mknod is never granted. */
struct graft_device_rule {
	uint32_t major, minor;
	bool read, write;
};

/* The answer of a cgroup when a process in it opens a device. */
enum graft_device_answer { GRAFT_ANSWER_UNKNOWN, GRAFT_ANSWER_ALLOWED, GRAFT_ANSWER_DENIED };

struct graft_cgroup_change; /* one change that can be undone; apply/cgroup/cgroup_versions.h */

struct graft_cgroup {
	int version;    /* 1, 2, or 0: rules are skipped (user namespace, no permission), which was logged */
	int dir_fd;     /* the container's cgroup directory; owned; -1 if not open */
	bool required;  /* missing permission is an error and does not skip the rules */
	char path[512]; /* path of that directory, for messages only; truncated if longer */
	struct graft_cgroup_change *changes; /* what graft_cgroup_allow() did, in order; owned */
	size_t n_changes;
};
#define GRAFT_CGROUP_INIT                  \
	{                                  \
		.version = 0, .dir_fd = -1 \
	}

/*
 * Finds the devices cgroup of process `pid` (0 = the calling process). Reads /proc/PID/cgroup, the
 * caller's own mountinfo and the cgroup mounts below `proc_root_fd` (an O_PATH descriptor of "/",
 * borrowed). Call it before joining the container's namespaces.
 *
 * If the caller lacks permission to look, or the cgroup of a container in a `user_namespace` cannot
 * be found, it logs one line and returns 0 with version 0; with `required` set, both are errors.
 * Error texts are those of SPEC libnvidia-container 10.
 */
int graft_cgroup_open(int proc_root_fd, pid_t pid, bool user_namespace, bool required, const struct graft_log *log,
		      struct graft_cgroup *ret_cgroup, struct graft_error *err);
/* Where the devices cgroup of a process is, for callers that examine it later. */
struct graft_cgroup_place {
	uint32_t version;  /* 1 or 2 */
	const char *mount; /* where its hierarchy is mounted */
	const char *path;  /* below that; "/" = the root of the mount */
	uint64_t id;       /* inode of the directory */
};
/*
 * Finds it as graft_cgroup_open() does. Strings are in the arena. Returns -1 with the same errors;
 * nothing is skipped.
 */
int graft_cgroup_find(int proc_root_fd, pid_t pid, struct graft_arena *arena, struct graft_cgroup_place *ret_place,
		      struct graft_error *err);
/*
 * Allows all rules at once. Does nothing if the version is 0 or there are no rules. Without
 * permission it logs one line and returns 0, or fails if the cgroup is required. A failure leaves
 * the rights as they were.
 */
int graft_cgroup_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
		       const struct graft_log *log, struct graft_error *err);
/*
 * Undoes what graft_cgroup_allow() did, last change first: on v1 it denies what was not allowed
 * before, on v2 it restores the old programs. Failures are logged and do not stop it.
 */
void graft_cgroup_undo(struct graft_cgroup *cgroup, const struct graft_log *log);
/*
 * Determines what the cgroup and its ancestors now answer to `n` accesses; changes nothing. v1:
 * according to devices.list. v2: by executing the attached programs here, all of which must allow
 * an access. UNKNOWN: a program cannot be read or computed. Returns -1 if the rules cannot be read
 * at all, such as with GRAFT_PERMISSION; the answers are UNKNOWN then.
 */
int graft_cgroup_look(struct graft_cgroup *cgroup, const struct graft_device_rule *accesses, size_t n,
		      const struct graft_log *log, enum graft_device_answer *ret_answers, struct graft_error *err);
/* Closes the cgroup. The rights stay; they can no longer be undone. */
void graft_cgroup_close(struct graft_cgroup *cgroup);
#define auto_cgroup __attribute__((cleanup(graft_cgroup_close)))

#endif
