/* SPDX-License-Identifier: Apache-2.0 */
/*
 * after_create: runs `create` of the low-level runtime and then does what had to wait for the
 * container's mounts (docs/decisions/0023-after-create.md). The container's program has not started
 * at that point, and does not start before this returns.
 */
#ifndef GRAFT_START_AFTER_CREATE_H
#define GRAFT_START_AFTER_CREATE_H

#include <stdbool.h>

#include "apply/oci/to_oci.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "request/oci_arguments.h"

/*
 * Whether we can finish the container after `create`. This needs a low-level runtime that returns
 * before the start, a pid file (--pid-file) that has an absolute path and is a regular file, a
 * command line that we understand well enough to delete the container again, a /proc that shows our
 * PID namespace, and no sockets that systemd passes to this process (LISTEN_PID). `script`: the
 * low-level runtime is a script, which rules it out. Reads the environment.
 */
bool graft_after_create_is_possible(const struct graft_oci_arguments *arguments, const char *low_level, bool script);

/*
 * Calls the low-level runtime with `argv` and applies `waiting` to the container that it made.
 * *ret_status is the status of the low-level runtime (low_level.h); if it failed, nothing else was
 * done. -1: the low-level runtime could not be started, or the container could not be finished and
 * was deleted again. Where our own mounts could not be restored it is left for the engine to
 * delete, with a warning.
 */
int graft_after_create(const struct graft_oci_arguments *arguments, const char *low_level, char **argv,
		       const struct graft_oci_waiting *waiting, const struct graft_log *log, struct graft_arena *arena,
		       int *ret_status, struct graft_error *err);

#endif
