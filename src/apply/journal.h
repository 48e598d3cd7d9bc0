/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: what was changed in a container, so that a later failure can undo all of it, last change first. Entries
 * hold descriptors, never paths of the container.
 *
 *	struct graft_journal *journal = graft_journal_new(log);         before anything is joined
 *	...
 *	rc = graft_journal_replaced(journal, dir_fd, "ld.so.cache", old_fd);
 *	if (rc == 0 && renameat(dir_fd, temporary, dir_fd, "ld.so.cache") < 0)
 *		graft_journal_forget(journal);
 *	...
 *	if (failed)
 *		graft_journal_undo(journal);
 *	graft_journal_free(journal);
 */
#ifndef GRAFT_APPLY_JOURNAL_H
#define GRAFT_APPLY_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/root.h"

struct graft_journal;

/* An empty journal, or NULL. The log is borrowed and may be NULL. Opens /proc/self/fd, by which mounts are undone. */
struct graft_journal *graft_journal_new(const struct graft_log *log);
/* Closes descriptors; undoes nothing. NULL is fine. Returns NULL. */
struct graft_journal *graft_journal_free(struct graft_journal *journal);

/* /proc/self/fd of this process, O_PATH; stays true in another mount namespace. Borrowed; -1: there is no procfs. */
int graft_journal_proc_fd(const struct graft_journal *journal);

/* Room for one entry without names, so that graft_journal_mounted() cannot fail. 0 or -ENOMEM. */
int graft_journal_reserve(struct graft_journal *journal);
/* A mount was attached: a descriptor of its root, swallowed. Needs a graft_journal_reserve() before. */
void graft_journal_mounted(struct graft_journal *journal, int take_mount_fd);
/* Takes such a mount back before the end: it is unmounted, and its descriptor closed. 0 or -errno, and then it stays in the journal. */
int graft_journal_unmount(struct graft_journal *journal, int mount_fd);
/* Keeps the descriptor of a directory until the end; as `parent_fd` below it is not duplicated. 0 or -ENOMEM (not swallowed). */
int graft_journal_hold(struct graft_journal *journal, int take_directory_fd);

/* Each returns 0, or -ENOMEM (then the caller undoes the thing itself). Descriptors are duplicated. */
int graft_journal_created(struct graft_journal *journal, int parent_fd, const char *name, bool is_directory);
/*
 * A file was replaced (rename over): `old_fd` is an O_PATH|O_NOFOLLOW descriptor of what had the name before, or -1 if there was
 * none. It comes back as the same inode where another hard link of it is left, else as a copy (content, owner, mode, times).
 */
int graft_journal_replaced(struct graft_journal *journal, int parent_fd, const char *name, int old_fd);
/* A symbolic link was replaced; `old_text` NULL = there was none. */
int graft_journal_relinked(struct graft_journal *journal, int parent_fd, const char *name, const char *old_text);
/* Takes the last entry back: the change that it announced did not happen. */
void graft_journal_forget(struct graft_journal *journal);

/* Undoes everything, last first. Failures are logged and do not stop it. The journal is empty afterwards. */
void graft_journal_undo(struct graft_journal *journal);

/* A watch that records what graft_root_mkdir / graft_root_mountpoint make. */
struct graft_root_watch graft_journal_watch(struct graft_journal *journal);

#endif
