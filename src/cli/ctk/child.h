/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: runs a program of the host, an engine that is asked about its configuration, and reads what it says. It gets an environment of its own (PATH and
 * HOME of ours, LC_ALL=C), no input, a process group of its own, and a limited time. No shell is involved.
 */
#ifndef GRAFT_CLI_CTK_CHILD_H
#define GRAFT_CLI_CTK_CHILD_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct ctk_child {
	const char *const *argv;      /* argv[0] is searched in PATH unless it has a slash; ended by NULL */
	const char *const *variables; /* further ones, "NAME=value", ended by NULL; or NULL */
	int timeout_ms;
};

struct ctk_child_result {
	int status;      /* exit status; 128 and the signal's number where one ended it */
	const char *out; /* stdout, NUL-terminated, as the rest in the arena */
	size_t out_length;
	const char *err; /* stderr, trimmed */
};

/*
 * Runs it to its end. 0 also when it fails: see `status`. -1: GRAFT_NOT_FOUND "NAME: no such file or directory" and the like when it cannot be started;
 * GRAFT_PROGRAM when it takes too long, it and what it started are killed then; GRAFT_TOO_BIG when it says more than 16 MiB; GRAFT_NO_MEMORY.
 */
int ctk_child_run(const struct ctk_child *child, struct graft_arena *arena, struct ctk_child_result *ret_result,
		  struct graft_error *err);

#endif
