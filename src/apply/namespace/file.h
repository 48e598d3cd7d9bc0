/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: carries out FILE and SYMLINK edits. Creates new inodes only, whatever an image has under
 * the name.
 */
#ifndef GRAFT_APPLY_NAMESPACE_FILE_H
#define GRAFT_APPLY_NAMESPACE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "apply/namespace/journal.h"
#include "plan/plan.h"

/*
 * Creates a file `name` in `parent_fd` with `content` and `mode` (unmasked; the caller's umask is
 * 0). An existing object other than a directory is replaced by rename and never opened. Returns 0
 * or -errno.
 */
int graft_file_write(struct graft_journal *journal, int parent_fd, const char *name, const void *content, size_t length,
		     mode_t mode);

enum graft_link_result {
	GRAFT_LINK_DONE,    /* made, corrected, or already right */
	GRAFT_LINK_KEPT,    /* something else has the name and stays */
	GRAFT_LINK_IS_FILE, /* REPLACE: a file has the name; the caller mounts the source over it */
};
/*
 * Makes a symbolic link `name` that points to `text`. Returns a graft_link_result or -errno;
 * -EISDIR if OVERWRITE meets a directory.
 */
int graft_file_link(struct graft_journal *journal, int parent_fd, const char *name, const char *text,
		    enum graft_conflict conflict);

#endif
