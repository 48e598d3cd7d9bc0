/* SPDX-License-Identifier: Apache-2.0 */
/*
 * low_level: passes the command line on to the low-level runtime, which inherits the caller's
 * environment and all descriptors that we did not open.
 */
#ifndef GRAFT_START_LOW_LEVEL_H
#define GRAFT_START_LOW_LEVEL_H

#include "base/arena.h"
#include "base/error.h"

/*
 * Becomes the program. Returns only on failure, with -1. argv[0] is replaced by the path; argv may
 * be empty.
 */
int graft_low_level_become(const char *path, char **argv, struct graft_arena *arena, struct graft_error *err);

/*
 * Calls the program and waits for it to end. It is killed when we are, as if we had become it;
 * other signals that would end us are forwarded to it, and no longer end us from the first call on.
 * *ret_status is its exit status, or the negative number of the signal that ended it. -1: it could
 * not be started: GRAFT_NOT_FOUND, GRAFT_PERMISSION, GRAFT_NO_MEMORY, GRAFT_IO.
 */
int graft_low_level_call(const char *path, char **argv, struct graft_arena *arena, int *ret_status,
			 struct graft_error *err);

/* Ends this program the way the called one ended, given its status from graft_low_level_call(). */
_Noreturn void graft_low_level_end_alike(int status);

#endif
