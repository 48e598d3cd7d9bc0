/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locate: finds the programs that the runtime hands on to (SPEC runtime-and-hook 3.4, 3.6): the low-level runtime, which it becomes, and the
 * hooks that it writes into config.json. A name is searched in PATH, then in the standard directories; it is no pattern (Q4). Directories of PATH
 * that are not absolute are passed over: the working directory is the bundle.
 */
#ifndef GRAFT_CLI_RUNTIME_LOCATE_H
#define GRAFT_CLI_RUNTIME_LOCATE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "request/config.h"

/* Set for a low-level runtime that is a script, so that one that calls us again is found out. Holds its path. */
#define RUNTIME_WRAPPER_VARIABLE "GRAFT_RUNTIME_WRAPPER"

/*
 * The first of config->runtime.runtimes that is there. Never this program: neither by another name nor one of its kind. *ret_script: it is a
 * script. -1: GRAFT_INVALID "at least one runtime candidate must be specified"; GRAFT_NOT_FOUND "error locating runtime: no runtime binary
 * found from candidate list: [runc crun]"; GRAFT_NO_MEMORY.
 */
int runtime_find_low_level(const struct graft_config *config, const struct graft_log *log, struct graft_arena *arena,
			   const char **ret_path, bool *ret_script, struct graft_error *err);
/*
 * Whether the low-level runtime is runc, a program of Go: it does not mind a hook that ends without having read the OCI state, which others may take
 * for a failure, and a hook that does read it waits for milliseconds (docs/decisions/0021-no-state.md). What cannot be read is not;
 * without memory the arena remembers.
 */
bool runtime_ignores_unread_state(const char *path, struct graft_arena *arena);
/*
 * Whether `create` of the low-level runtime comes back when the container's root and mounts are as they will be and its program has not been started, which
 * is known of runc and crun.
 */
bool runtime_stops_before_start(const char *path);
/* Fails when a wrapper that we were about to become has called us again. */
int runtime_refuse_loop(const struct graft_config *config, struct graft_error *err);

/* The prestart hook of mode legacy; its default place when it is not found. NULL: memory. */
const char *runtime_find_hook(const struct graft_config *config, const struct graft_log *log,
			      struct graft_arena *arena);
/*
 * Graft's nvidia-cdi-hook. A path that is configured is taken as it is, unless it is that of nvidia-ctk: what our hooks are told, another
 * toolkit's would not understand. Otherwise it is the one beside this program, or in PATH. NULL: memory.
 */
const char *runtime_find_cdi_hook(const struct graft_config *config, const struct graft_log *log,
				  struct graft_arena *arena);

#endif
