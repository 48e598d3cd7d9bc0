/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: records what was changed in a container, so that a later failure can undo all of it,
 * last change first. Entries hold descriptors, never paths of the container; a name is restored
 * only while it is what was put there (apply/namespace/restore.h).
 *
 *	struct graft_journal *journal = graft_journal_new(log);         before anything is joined
 *	...
 *	rc = graft_journal_replaced(journal, dir_fd, "ld.so.cache", old_fd);
 *	if (rc == 0 && renameat(dir_fd, temporary, dir_fd, "ld.so.cache") < 0)
 *		graft_journal_forget(journal);
 *	else
 *		graft_journal_settle(journal);
 *	...
 *	if (failed)
 *		graft_journal_undo(journal, budget);
 *	graft_journal_free(journal);
 */
#ifndef GRAFT_APPLY_NAMESPACE_JOURNAL_H
#define GRAFT_APPLY_NAMESPACE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/budget.h"
#include "base/log.h"
#include "base/root.h"

struct graft_journal;

/*
 * Returns an empty journal, or NULL if out of memory. The log is borrowed and may be NULL. Opens
 * /proc/self/fd, which undoing mounts needs.
 */
struct graft_journal *graft_journal_new(const struct graft_log *log);
/* Closes all descriptors and undoes nothing. NULL is fine. Returns NULL. */
struct graft_journal *graft_journal_free(struct graft_journal *journal);

/*
 * /proc/self/fd of this process, O_PATH; remains valid in another mount namespace. Borrowed; -1
 * without a procfs.
 */
int graft_journal_proc_fd(const struct graft_journal *journal);

/*
 * Reserves room for one entry, so that graft_journal_mounted() cannot fail, and settles the last
 * entry. Returns 0 or -ENOMEM.
 */
int graft_journal_reserve(struct graft_journal *journal);
/*
 * Records that a mount was attached. Takes a descriptor of its root. Call graft_journal_reserve()
 * before.
 */
void graft_journal_mounted(struct graft_journal *journal, int take_mount_fd);
/*
 * Undoes such a mount before the end: unmounts it and closes its descriptor. Returns 0 or -errno;
 * on failure the mount stays in the journal.
 */
int graft_journal_unmount(struct graft_journal *journal, int mount_fd);
/*
 * Keeps the descriptor of a directory open until the end; passed as `parent_fd` below, it is not
 * duplicated. Returns 0 or -ENOMEM (then it stays the caller's).
 */
int graft_journal_hold(struct graft_journal *journal, int take_directory_fd);

/*
 * Records that a file or directory was created. Like the following functions, it duplicates
 * descriptors and returns 0 or -ENOMEM; on failure the caller has to undo the change.
 */
int graft_journal_created(struct graft_journal *journal, int parent_fd, const char *name, bool is_directory);
/*
 * Records a new symbolic link that points to `text`, by which undo recognizes it; it needs no
 * graft_journal_settle().
 */
int graft_journal_linked(struct graft_journal *journal, int parent_fd, const char *name, const char *text);
/*
 * Records that a file was replaced (rename over). `old_fd` is an O_PATH|O_NOFOLLOW descriptor of
 * what had the name before, or -1 for nothing. Undo restores the same inode if another hard link to
 * it is left, otherwise a copy (content, owner, mode, times).
 */
int graft_journal_replaced(struct graft_journal *journal, int parent_fd, const char *name, int old_fd);
/*
 * Records that a symbolic link was replaced; `old_text` is its old target, or NULL if there was no
 * link.
 */
int graft_journal_relinked(struct graft_journal *journal, int parent_fd, const char *name, const char *old_text);
/*
 * Confirms that the change in the last entry has happened: what has the name now is ours. Without
 * this call, graft_journal_reserve() and every following entry confirm it.
 */
void graft_journal_settle(struct graft_journal *journal);
/*
 * The same with a descriptor that is already open, which saves a call: if the last entry since
 * `length_before` entries records a created file, that file is `fd`, and the journal takes `fd`
 * (true). Otherwise it stays the caller's (false).
 */
bool graft_journal_keep(struct graft_journal *journal, size_t length_before, int fd);
size_t graft_journal_length(const struct graft_journal *journal);
/* Removes the last entry: the change that it announced did not happen. */
void graft_journal_forget(struct graft_journal *journal);

/*
 * Undoes everything, last change first. Failures are logged and do not stop it. The journal is
 * empty afterwards. `budget` is that of the undo, not of the work that failed, which may have spent
 * its own; once it is spent, only mounts are still undone. NULL: there is no limit.
 */
void graft_journal_undo(struct graft_journal *journal, struct graft_budget *budget);
/*
 * The same for the entries after the first `length` (graft_journal_length()); those stay. Closes
 * the directories that were held since. Returns whether all of it was undone.
 */
bool graft_journal_undo_to(struct graft_journal *journal, size_t length, struct graft_budget *budget);

/*
 * Returns a watch that records what graft_image_root_mkdir() and graft_image_root_mountpoint()
 * create.
 */
struct graft_root_watch graft_journal_watch(struct graft_journal *journal);

#endif
