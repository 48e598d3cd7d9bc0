/* SPDX-License-Identifier: Apache-2.0 */
/* low_level: hands the command line on to the low-level runtime. Its environment and all descriptors that we did not open are the caller's. */
#ifndef GRAFT_CLI_RUNTIME_LOW_LEVEL_H
#define GRAFT_CLI_RUNTIME_LOW_LEVEL_H

#include "base/arena.h"
#include "base/error.h"

/* Becomes the program; returns only when that fails, with -1. argv[0] becomes the path; argv may be empty. */
int low_level_become(const char *path, char **argv, struct graft_arena *arena, struct graft_error *err);

/*
 * Calls it and waits for its end. It dies with us, so that whoever kills us kills it, as when we had become it; other signals that would end us are handed on to it, and from
 * then on they do not end us. *ret_status is its exit status, or the negative
 * number of the signal that ended it. -1: it could not be started; GRAFT_NOT_FOUND, GRAFT_PERMISSION, GRAFT_NO_MEMORY, GRAFT_IO.
 */
int low_level_call(const char *path, char **argv, struct graft_arena *arena, int *ret_status, struct graft_error *err);

/* Ends this program in the way that the one that was called has ended. */
_Noreturn void low_level_end_alike(int status);

#endif
