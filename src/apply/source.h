/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: what a BIND or DEVICE edit mounts, opened and verified on the host before the container is touched.
 *
 * Usually it is a detached copy of the mount already. Where that is not possible from here (a rootless caller may only copy after joining; mount(2)
 * only knows mounts of the present namespace), it is an O_PATH descriptor that says what must be found again under the
 * same path after joining: the same inode of the same file system, anything else is refused.
 */
#ifndef GRAFT_APPLY_SOURCE_H
#define GRAFT_APPLY_SOURCE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "apply/mount.h"
#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "plan/plan.h"

struct graft_source {
	int fd;        /* owned; -1: none, or an optional one that vanished */
	bool detached; /* fd is a detached mount */
	bool settled;  /* which has its flags */
	struct stat stat;
};
#define GRAFT_SOURCE_INIT \
	{                 \
		.fd = -1  \
	}

/*
 * Opens and verifies. `*late` says that no copy can be made yet, and becomes true when that turns out. An optional source that is not there
 * is no failure (fd stays -1, a warning is logged).
 */
int graft_source_open(const struct graft_mounter *mounter, const struct graft_edit *edit, bool *late,
		      const struct graft_log *log, struct graft_source *ret_source, struct graft_error *err);

/*
 * Makes a late source ready in the present mount namespace: `root` is its "/", or NULL if none was joined. Afterwards it is detached if the
 * mounter can do that, else an O_PATH descriptor that mount(2) can take.
 */
int graft_source_bring(const struct graft_mounter *mounter, const struct graft_edit *edit,
		       const struct graft_root *root, struct graft_source *source, struct graft_error *err);

/* Closes; a copy that was not attached is gone with it. */
void graft_source_close(struct graft_source *source);

#endif
