/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_processes: the processes of a host that keep containers, or start them. Asks no engine,
 * and does not know what their arguments mean.
 */
#ifndef GRAFT_DOCTOR_ENGINE_PROCESSES_H
#define GRAFT_DOCTOR_ENGINE_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/root.h"
#include "formats/procfs.h"

enum graft_engine_program {
	GRAFT_ENGINE_SHIM,    /* of containerd: one for each container or pod of Docker, Kubernetes, ctr */
	GRAFT_ENGINE_CONMON,  /* one for each container of Podman or CRI-O */
	GRAFT_ENGINE_DOCKERD, /* the daemon, which may have another data root than the usual one */
};

struct graft_engine_process {
	enum graft_engine_program program;
	bool root;                      /* of the host's root: other users can give a process any name */
	const char *directory;          /* in procfs: "/proc/4711" */
	struct graft_command_line line; /* not empty */
};

/*
 * Lists them, except those of containers, which may be engines within engines. A process that
 * cannot be read is taken to have ended; *ret_denied is set if permission was missing, and
 * otherwise unchanged. Failed allocations are recorded in the arena.
 */
void graft_engine_processes(const struct graft_root *host, struct graft_arena *arena,
			    struct graft_engine_process **ret_processes, size_t *ret_n, bool *ret_denied);
/*
 * Returns the working directory of a process, which is absolute: the bundle of a shim's first
 * container. NULL if it has ended, or if this user may not read it; *ret_denied is as above.
 */
const char *graft_engine_process_directory(const struct graft_root *host, const struct graft_engine_process *process,
					   struct graft_arena *arena, bool *ret_denied);

#endif
