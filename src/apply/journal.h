/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: what was changed in a container, so that a later failure can undo all of it, last change first. Entries
 * hold descriptors, never paths of the container.
 */
#ifndef GRAFT_APPLY_JOURNAL_H
#define GRAFT_APPLY_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/root.h"

struct graft_journal;

/* An empty journal, or NULL. The log is borrowed and may be NULL. */
struct graft_journal *graft_journal_new(const struct graft_log *log);
/* Closes descriptors; undoes nothing. NULL is fine. Returns NULL. */
struct graft_journal *graft_journal_free(struct graft_journal *journal);

/* Each returns 0, or -ENOMEM (then the caller undoes the thing itself). Descriptors are duplicated. */
int graft_journal_mounted(struct graft_journal *journal, int mount_fd); /* O_PATH descriptor of the mount's root */
int graft_journal_created(struct graft_journal *journal, int parent_fd, const char *name, bool is_directory);
/* A file was replaced (rename over): `old_fd` holds the old content (O_PATH of the unlinked inode), or -1 if there was none. */
int graft_journal_replaced(struct graft_journal *journal, int parent_fd, const char *name, int old_fd);
/* A symbolic link was replaced; `old_text` NULL = there was none. */
int graft_journal_relinked(struct graft_journal *journal, int parent_fd, const char *name, const char *old_text);

/* Undoes everything, last first. Failures are logged and do not stop it. */
void graft_journal_undo(struct graft_journal *journal);

/* A watch that records what graft_root_mkdir / graft_root_mountpoint make. */
struct graft_root_watch graft_journal_watch(struct graft_journal *journal);

#endif
