/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locate: finds the programs that the runtime hands over to (SPEC runtime-and-hook 3.4, 3.6): the
 * low-level runtime, and the hooks that it writes into config.json. A name is searched in PATH,
 * then in the standard directories; it is not a pattern (SPEC runtime-and-hook Q4). Relative
 * directories in PATH are ignored: the working directory is the bundle.
 */
#ifndef GRAFT_START_LOCATE_H
#define GRAFT_START_LOCATE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "request/config.h"

/*
 * Environment variable that is set to the path of a low-level runtime that is a script, in order to
 * detect a script that calls this program again.
 */
#define GRAFT_WRAPPER_VARIABLE "GRAFT_RUNTIME_WRAPPER"

/*
 * Finds the first of config->runtime.runtimes that exists and is neither this program, under
 * whatever name, nor one of its kind. *ret_path is in the arena. *ret_script: it is a script. -1:
 * GRAFT_INVALID "at least one runtime candidate must be specified"; GRAFT_NOT_FOUND "error locating
 * runtime: no runtime binary found from candidate list: [runc crun]"; GRAFT_NO_MEMORY.
 */
int graft_locate_low_level(const struct graft_config *config, const struct graft_log *log, struct graft_arena *arena,
			   const char **ret_path, bool *ret_script, struct graft_error *err);
/*
 * Whether the low-level runtime is runc, as a Go program. It ignores a hook that ends without
 * reading the OCI state, which other runtimes may take for a failure; a hook that does read it
 * would wait for milliseconds (docs/decisions/0021-no-state.md). False for a file that cannot be
 * read. Without memory the arena is marked as failed.
 */
bool graft_low_level_ignores_unread_state(const char *path, struct graft_arena *arena);
/*
 * Whether `create` of the low-level runtime returns when the container's root and mounts are
 * complete and its program has not started. This is known of runc and crun.
 */
bool graft_low_level_stops_before_start(const char *path);
/* Fails with GRAFT_INVALID if a script that we became as low-level runtime has called us again. */
int graft_locate_refuse_loop(const struct graft_config *config, struct graft_error *err);

/*
 * The path of mode legacy's prestart hook; its default path if it is not found. NULL: out of
 * memory.
 */
const char *graft_locate_hook(const struct graft_config *config, const struct graft_log *log,
			      struct graft_arena *arena);
/*
 * The path of Graft's nvidia-cdi-hook. A configured path is used as it is, unless it is that of
 * nvidia-ctk: another toolkit would not understand our hooks' arguments. Otherwise it is the
 * program next to this one, or the one in PATH, or the default path. NULL: out of memory.
 */
const char *graft_locate_cdi_hook(const struct graft_config *config, const struct graft_log *log,
				  struct graft_arena *arena);

#endif
