/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish: `create` of the low-level runtime, and behind it what had to wait for the container's mounts (docs/decisions/0023-after-create.md). The container's program
 * has not been started then, and is not before we have come back.
 */
#ifndef GRAFT_CLI_RUNTIME_FINISH_H
#define GRAFT_CLI_RUNTIME_FINISH_H

#include <stdbool.h>

#include "apply/to_oci.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "request/oci_arguments.h"

/*
 * Whether `create` can be finished: the low-level runtime stops before the start, its process is told in a plain file of an absolute path (--pid-file), the
 * command line is understood well enough to delete the container again, /proc has the number that is told, and nothing is handed on that is for a process of our
 * number. Reads the environment.
 */
bool runtime_can_finish(const struct graft_oci_arguments *arguments, const char *low_level, bool script);

/*
 * Calls the low-level runtime with argv and applies `waiting` to the container that it made. *ret_status: that of the low-level runtime
 * (low_level.h); when it failed nothing more was done. -1: the container could not be finished, and is deleted again; or the low-level
 * runtime could not be started.
 */
int runtime_finish(const struct graft_oci_arguments *arguments, const char *low_level, char **argv,
		   const struct graft_oci_waiting *waiting, const struct graft_log *log, struct graft_arena *arena,
		   int *ret_status, struct graft_error *err);

#endif
