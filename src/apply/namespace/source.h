/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: what a BIND or DEVICE edit mounts, opened and verified on the host before the container
 * is touched.
 *
 * Usually it is a detached copy of the mount already. Where that is not possible from here (a
 * rootless caller may only copy after joining; mount(2) only handles mounts of the current
 * namespace), it is an O_PATH descriptor, and after joining the same inode of the same file system
 * must be found under the same path; anything else is refused.
 */
#ifndef GRAFT_APPLY_NAMESPACE_SOURCE_H
#define GRAFT_APPLY_NAMESPACE_SOURCE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "apply/namespace/mount.h"
#include "base/error.h"
#include "base/image_root.h"
#include "base/log.h"
#include "plan/plan.h"

struct graft_source {
	int fd;        /* owned; -1: none, or an optional source that vanished */
	bool detached; /* fd is a detached mount */
	struct stat stat;
};
#define GRAFT_SOURCE_INIT \
	{                 \
		.fd = -1  \
	}

/*
 * Opens and verifies a source. `*late` means that no copy can be made yet; it is set if that turns
 * out to be so. A missing optional source is not a failure (fd stays -1, a warning is logged).
 */
int graft_source_open(struct graft_mounter *mounter, const struct graft_edit *edit, bool *late,
		      const struct graft_log *log, struct graft_source *ret_source, struct graft_error *err);

/*
 * Prepares a late source in the current mount namespace. `root` is the "/" of that namespace, or
 * NULL if none was joined. Afterwards the source is detached if the mounter supports that,
 * otherwise an O_PATH descriptor that mount(2) can use.
 */
int graft_source_bring(struct graft_mounter *mounter, const struct graft_edit *edit,
		       const struct graft_image_root *root, struct graft_source *source, struct graft_error *err);

/* Closes the source; a copy that was not attached is destroyed. */
void graft_source_close(struct graft_source *source);

#endif
