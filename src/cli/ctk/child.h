/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: runs a program of the host, such as an engine that reports its configuration, and reads
 * its output. The program gets a minimal environment (our PATH and HOME, LC_ALL=C), no input, a
 * process group of its own and a time limit. No shell is involved.
 */
#ifndef GRAFT_CLI_CTK_CHILD_H
#define GRAFT_CLI_CTK_CHILD_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct ctk_child {
	/* NULL-terminated; argv[0] is searched for in PATH unless it contains a slash */
	const char *const *argv;
	const char *const *variables; /* additional variables, "NAME=value", NULL-terminated; or NULL */
	/*
	 * A directory that becomes the program's root; its PATH is the usual one then. NULL: ours.
	 */
	const char *root;
	int timeout_ms;
};

struct ctk_child_result {
	int status;      /* exit status, or 128 plus the number of the signal that killed it */
	const char *out; /* stdout, NUL-terminated; like `err` in the arena */
	size_t out_length;
	const char *err; /* stderr, without surrounding white space */
};

/*
 * Runs a program and waits for it. Returns 0 even if the program fails: see `status`. Returns -1
 * with GRAFT_NOT_FOUND or the like and "NAME cannot be run" if it cannot be started; GRAFT_PROGRAM
 * if it exceeds its time limit, in which case it is killed with everything it started;
 * GRAFT_TOO_BIG if it prints more than 16 MiB; GRAFT_NO_MEMORY.
 */
int ctk_child_run(const struct ctk_child *child, struct graft_arena *arena, struct ctk_child_result *ret_result,
		  struct graft_error *err);

#endif
