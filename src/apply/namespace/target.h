/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: the container that a plan is applied to: its root as a descriptor, its mount namespace,
 * its owner.
 *
 * supervised: another process, by host pid; its root is looked up through /proc/PID/root, which
 * shows that process' mounts.
 *
 * created: the same, for a process that has already changed its root: all that it sees is the
 * container's.
 *
 * standalone: the caller's own view (an LXC hook, enroot, bubblewrap): nothing is joined.
 */
#ifndef GRAFT_APPLY_NAMESPACE_TARGET_H
#define GRAFT_APPLY_NAMESPACE_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/image_root.h"
#include "base/log.h"
#include "formats/oci_dev.h"

struct graft_target {
	pid_t pid; /* the container's process; standalone: the caller's parent */
	bool supervised;
	const char *rootfs;           /* as given; borrowed; for messages only */
	struct graft_image_root root; /* the container's root directory */
	int process_fd;  /* O_PATH of /proc/PID: refers to that process even if the pid is reused; standalone: -1 */
	int mount_ns_fd; /* namespace to join, or -1 if it is our own */
	int user_ns_fd;  /* user namespace to join first (rootless: we have no CAP_SYS_ADMIN of our own), or -1 */
	uid_t uid;       /* owner of the container's process and of new files */
	gid_t gid;
	bool user_namespace;             /* the container's user namespace is not the initial one */
	struct graft_budget *own_budget; /* of `root`, if the caller passed none; owned */
	struct graft_oci_dev oci_dev;    /* set by a caller that has read config.json; borrowed */
};
#define GRAFT_TARGET_INIT                                                                            \
	{                                                                                            \
		.root = GRAFT_IMAGE_ROOT_INIT, .process_fd = -1, .mount_ns_fd = -1, .user_ns_fd = -1 \
	}

/*
 * Opens a target; changes and joins nothing. `budget` is that of this start and must outlive the
 * target; NULL: the target gets one of its own. Fails with GRAFT_INVALID, GRAFT_NOT_FOUND,
 * GRAFT_PERMISSION or GRAFT_NO_MEMORY.
 */
int graft_target_open(pid_t pid, bool supervised, const char *rootfs, struct graft_budget *budget,
		      const struct graft_log *log, struct graft_target *ret_target, struct graft_error *err);
/*
 * The same for a container that a low-level runtime has created and not started: its process is
 * waiting and already has the container's root as its own, which must be the directory `dev`,
 * `inode`. The process may run as any user; the owner is the caller, who is root. Fails as above;
 * GRAFT_PROGRAM: the process has another root, shares our mount namespace, or is in a user
 * namespace other than the initial one; GRAFT_UNSAFE: its root is ours.
 */
int graft_target_open_created(pid_t pid, dev_t dev, ino_t inode, struct graft_budget *budget,
			      const struct graft_log *log, struct graft_target *ret_target, struct graft_error *err);
/*
 * The same for a container that runs, in order to look at it: the root is all that its process
 * sees, whatever that is. Not for changes: nothing is refused. Fails with GRAFT_NOT_FOUND,
 * GRAFT_PERMISSION or GRAFT_NO_MEMORY.
 */
int graft_target_open_running(pid_t pid, const struct graft_log *log, struct graft_target *ret_target,
			      struct graft_error *err);
/*
 * SECURITY: refuses a target whose root is one of these directories of the host, mounted over the
 * root of the image: a link of the image has led a volume there, and what is written would be
 * written into it. Call it before joining anything. Fails with GRAFT_UNSAFE, also if it cannot be
 * determined.
 */
int graft_target_refuse_volume(const struct graft_target *target, const char *const *sources, size_t n_sources,
			       struct graft_error *err);
/*
 * Finds out whether the root's /dev is a tmpfs that was mounted for this container (root->own_dev).
 * Without this call, none is. Call it before joining anything: a tmpfs that the host has mounted
 * elsewhere is in our own table of mounts, and the paths of config.json are those of our namespace.
 */
void graft_target_find_dev(struct graft_image_root *root, const struct graft_oci_dev *config);
/* Whether this process is in a user namespace other than the initial one. */
bool graft_in_user_namespace(void);
void graft_target_close(struct graft_target *target);
#define auto_target __attribute__((cleanup(graft_target_close)))

#endif
