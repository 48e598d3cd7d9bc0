/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modprobe: loads a kernel module with the modprobe program of a driver root: the one program that this project runs as root, before any
 * container is touched. It gets no environment but a search path, and of capabilities what root has and CAP_SYS_MODULE.
 */
#ifndef GRAFT_APPLY_MODPROBE_H
#define GRAFT_APPLY_MODPROBE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/root.h"

#define GRAFT_MODPROBE_DEFAULT "/sbin/modprobe"

/*
 * The program inside `root`: what the kernel itself would run (/proc/sys/kernel/modprobe of `root` or else of `host`), or /sbin/modprobe where that is not
 * there. NULL when there is none that may be run.
 */
const char *graft_modprobe_find(const struct graft_root *root, const struct graft_root *host,
				struct graft_arena *arena);

/*
 * Runs `program` for one module with `root` as its root directory, and waits for it. What it prints is put, as text, into `output` (`size` bytes with the
 * end; the rest is dropped), or nowhere when that is NULL. 0; -1: "exit status 1", "killed by signal 9", or why it could not be started.
 */
int graft_modprobe_run(const struct graft_root *root, const char *program, const char *module, char *output,
		       size_t size, struct graft_error *err);

#endif
