/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_file: a file of the host that is locked as long as one process uses something.
 *
 * SECURITY: a process that can open a file can lock it (flock(2)), even if it can only read it. So
 * the file is our user's alone; a directory that others can read cannot be a lock.
 */
#ifndef GRAFT_APPLY_LOCK_FILE_H
#define GRAFT_APPLY_LOCK_FILE_H

#include "base/error.h"

/*
 * Locks the file `name` in `dir_fd` until the descriptor that it returns is closed; makes it (0600)
 * if it does not exist, and gives it that mode if it does. A process that removes the file does so
 * while it has the lock. Returns -errno without a change to what is there: -EWOULDBLOCK if another
 * process has the lock; -EINVAL for what is not a regular file; -EMLINK for a file that is not ours
 * or root's alone.
 */
int graft_lock_file_take(int dir_fd, const char *name);
/* Describes what graft_lock_file_take() returned for the file at `path`. Returns -1. */
int graft_lock_file_fail(int rc, const char *path, struct graft_error *err);

#endif
