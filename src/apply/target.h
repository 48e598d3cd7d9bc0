/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: the container that a plan is applied to: its root as a descriptor, its mount namespace, its owner.
 *
 * supervised: another process, by host pid; its root is looked up through /proc/PID/root, which shows that process' mounts.
 * created:    the same, of a process that has changed its root already: all of its view is the container's.
 * standalone: the caller's own view (an LXC hook, enroot, bubblewrap): nothing is joined.
 */
#ifndef GRAFT_APPLY_TARGET_H
#define GRAFT_APPLY_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"
#include "base/root.h"

struct graft_target {
	pid_t pid; /* the container's process; standalone: the caller's parent */
	bool supervised;
	const char *rootfs;     /* as given; borrowed; for messages only */
	struct graft_root root; /* the container's root directory */
	int process_fd;  /* O_PATH of /proc/PID: stays that process', also when the pid is used again; standalone: -1 */
	int mount_ns_fd; /* namespace to join, or -1 when it is our own */
	int user_ns_fd;  /* user namespace to join first (rootless: we have no CAP_SYS_ADMIN of our own), or -1 */
	uid_t uid;       /* owner of the container's process: what new files belong to */
	gid_t gid;
	bool user_namespace;       /* the container's user namespace is not the initial one */
	struct graft_texts *texts; /* owned; what `root` remembers of the image's files; NULL: nothing */
};
#define GRAFT_TARGET_INIT                                                                      \
	{                                                                                      \
		.root = GRAFT_ROOT_INIT, .process_fd = -1, .mount_ns_fd = -1, .user_ns_fd = -1 \
	}

/* Opens it; nothing is changed or joined yet. -1: GRAFT_INVALID, GRAFT_NOT_FOUND, GRAFT_PERMISSION, GRAFT_NO_MEMORY. */
int graft_target_open(pid_t pid, bool supervised, const char *rootfs, const struct graft_log *log,
		      struct graft_target *ret_target, struct graft_error *err);
/*
 * The same for a container that a low-level runtime has made and not started: its process has the container's root, which is the directory of that number, for
 * its own already, and waits. Its user may be any; the owner is the caller, who is root. -1 as above; GRAFT_PROGRAM: the process has another root, lives in our mount
 * namespace, or in a user namespace other than the first; GRAFT_UNSAFE: its root is ours.
 */
int graft_target_open_created(pid_t pid, dev_t dev, ino_t inode, const struct graft_log *log,
			      struct graft_target *ret_target, struct graft_error *err);
/* Whether this process lives in another user namespace than the first one. */
bool graft_in_user_namespace(void);
void graft_target_close(struct graft_target *target);
#define auto_target __attribute__((cleanup(graft_target_close)))

#endif
