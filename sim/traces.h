/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces: what `run` has to leave on the machine while it runs: empty directories that serve as
 * mount points, and the process that removes them. That process does not belong to COMMAND: it
 * waits until the last process of the simulated host has ended, for whatever reason.
 */
#ifndef GRAFT_SIM_TRACES_H
#define GRAFT_SIM_TRACES_H

#include <stddef.h>

#include "base/error.h"

#define SIM_MAX_TRACES 32u

struct sim_traces {
	int namespace_fd; /* the machine's mount namespace */
	size_t n;
	struct {
		char path[256];
		int fd; /* holds a shared lock while a process uses the directory */
	} directories[SIM_MAX_TRACES];
};

/*
 * Remembers the mount namespace of the caller, which is the machine's. Call it before unshare(2).
 * Returns 0, or -1 with the error set.
 */
int sim_traces_open(struct sim_traces *traces, struct graft_error *err);

/*
 * Makes a directory if it is missing. If a run of graft-sim made it, this one or another, it is
 * removed when the last of them has ended. Returns 0, or -1 with the error set.
 */
int sim_traces_directory(struct sim_traces *traces, const char *path, struct graft_error *err);

/*
 * Starts the process that waits for the end of the file system mounted at `stage` and then removes
 * the directories. Does nothing if there are none. Closes `traces`.
 */
void sim_traces_guard(struct sim_traces *traces, const char *stage);

#endif
