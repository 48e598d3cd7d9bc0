/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seclude: keeps what is mounted in a container from propagating to its host. If the mount below is
 * shared (mount_namespaces(7)), the kernel repeats each mount on its peers: a library would cover
 * the host's own file and stay there after the container is gone, and a cover would hide the driver
 * from the host. Unmounting propagates to the peers too, including the host's own mount at that
 * place.
 *
 * So the mount below leaves its peer group while we work on it and rejoins it afterwards. The
 * operator's configuration is preserved: later mounts of the container reach the host as before.
 * BASELINE 5.15 (MOVE_MOUNT_SET_GROUP): on older kernels a mount cannot rejoin a group. There it
 * still receives what the host mounts but no longer sends, and a warning is logged.
 */
#ifndef GRAFT_APPLY_NAMESPACE_SECLUDE_H
#define GRAFT_APPLY_NAMESPACE_SECLUDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

#define GRAFT_SECLUDED_MAX 16 /* mounts below ours: the root, /dev, /proc, volumes */

struct graft_seclusion {
	int proc_fd;   /* our /proc/self/fd, borrowed */
	int spared_fd; /* borrowed; the mount it is on is left as it is; -1: none */
	size_t n, n_plain;
	struct {
		int mount_fd, group_fd; /* the mount, and a copy in its peer group (-1: it cannot rejoin); owned */
	} mounts[GRAFT_SECLUDED_MAX];
	int plain_ids[GRAFT_SECLUDED_MAX]; /* mounts known not to be shared */
};
#define GRAFT_SECLUSION_INIT                   \
	{                                      \
		.proc_fd = -1, .spared_fd = -1 \
	}

enum graft_seclude_result {
	GRAFT_SECLUDE_DONE,
	GRAFT_SECLUDE_PLAIN,  /* it has no peers, as far as can be determined */
	GRAFT_SECLUDE_SPARED, /* left as it is */
};
/* Takes the mount that `fd` is on out of its peer group. Returns a result or -errno. */
int graft_seclude(struct graft_seclusion *seclusion, int fd);
/* Puts every mount back into its group. Call it in the mount namespace that contains the mounts. */
void graft_seclude_end(struct graft_seclusion *seclusion, const struct graft_log *log);

#endif
