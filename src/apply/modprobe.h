/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modprobe: loads a kernel module with the modprobe program of a driver root, before any container
 * is touched. Its environment
 * is only a search path; its capabilities are those of root and CAP_SYS_MODULE.
 */
#ifndef GRAFT_APPLY_MODPROBE_H
#define GRAFT_APPLY_MODPROBE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/root.h"

#define GRAFT_MODPROBE_DEFAULT "/sbin/modprobe"

/*
 * Finds the program inside `root`: the one that the kernel itself would run
 * (/proc/sys/kernel/modprobe of `root`, otherwise of `host`), or /sbin/modprobe if that does not
 * exist. Returns NULL if there is no executable program.
 */
const char *graft_modprobe_find(const struct graft_root *root, const struct graft_root *host,
				struct graft_arena *arena);

/*
 * Runs `program` for one module with `root` as its root directory and waits for it. Its output is
 * stored as text in `output` (`size` bytes including the NUL; the rest is dropped), or discarded if
 * that is NULL. Returns 0, or -1: "exit status 1", "killed by signal 9", or why it could not be
 * started.
 */
int graft_modprobe_run(const struct graft_root *root, const char *program, const char *module, char *output,
		       size_t size, struct graft_error *err);

#endif
