/* SPDX-License-Identifier: Apache-2.0 */
/* create: what the runtime does for `create` before it becomes the low-level runtime (SPEC runtime-and-hook 3.7, 3.8, 5.3, 6.1). */
#ifndef GRAFT_CLI_RUNTIME_CREATE_H
#define GRAFT_CLI_RUNTIME_CREATE_H

#include "apply/to_oci.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "request/config.h"

/*
 * Edits <bundle>/config.json as its container asks for, in the mode `word` ("auto", "legacy", ...). A container that asks for no GPU is decided
 * here: no mode is called for it but legacy, and the file is rewritten only when it holds a prestart hook of NVIDIA's. `low_level` is the path of the
 * low-level runtime that will read it. `bundle` NULL = the working directory. *ret_waiting is what the caller has to do when that has made the container
 * (finish.h); the caller's. `ret_waiting` NULL: the caller does not come back. -1: nothing was written.
 */
int runtime_edit_bundle(const struct graft_config *config, const char *word, const char *low_level, const char *bundle,
			const struct graft_log *log, struct graft_arena *arena, struct graft_oci_waiting *ret_waiting,
			struct graft_error *err);

#endif
