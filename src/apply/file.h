/* SPDX-License-Identifier: Apache-2.0 */
/* file: FILE and SYMLINK edits: new inodes only, whatever an image holds at the name. */
#ifndef GRAFT_APPLY_FILE_H
#define GRAFT_APPLY_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "apply/journal.h"
#include "plan/plan.h"

/*
 * Makes a file `name` in `parent_fd` with `content` and `mode` (not masked; the caller's umask is 0). What has the name, if not a directory, is
 * replaced by rename, never opened. 0 or -errno.
 */
int graft_file_write(struct graft_journal *journal, int parent_fd, const char *name, const void *content, size_t length,
		     mode_t mode);

enum graft_link_result {
	GRAFT_LINK_DONE,    /* made, corrected, or right already */
	GRAFT_LINK_KEPT,    /* something is there that stays */
	GRAFT_LINK_IS_FILE, /* REPLACE: a file is there; the caller binds the source over it */
};
/* Makes a link `name` that says `text`. A graft_link_result or -errno; -EISDIR: a directory that OVERWRITE finds. */
int graft_file_link(struct graft_journal *journal, int parent_fd, const char *name, const char *text,
		    enum graft_conflict conflict);

#endif
