/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_check: asks an engine's own program about configurations: what its own one is, which version it is, and whether it understands files that have not
 * taken their places yet.
 */
#ifndef GRAFT_CLI_CTK_ENGINE_CHECK_H
#define GRAFT_CLI_CTK_ENGINE_CHECK_H

#include "cli/ctk/ctk.h"
#include "engine/engine.h"

/*
 * What the engine says that its configuration is ("containerd config dump", "crio status config"). `executable` NULL = its usual name. -1: it cannot be run, or
 * fails: "failed to run command EXE [config dump]: ...".
 */
int ctk_engine_read_source(struct ctk *ctk, const struct graft_engine *engine, const char *executable,
			   struct graft_engine_request *request, struct graft_error *err);

/* Whether the containerd that is installed merges files key by key; false when there is none, or it does not say. -1: GRAFT_NO_MEMORY. */
int ctk_engine_merges_deeply(struct ctk *ctk, const char *executable, bool *ret_deeply, struct graft_error *err);

/*
 * Lets the engine's program read the files as the edits make them, in a private directory. 0 when it takes them, and when it is not installed or has no way to
 * check (told at level debug). -1: it refuses them, with its words; or, unless `undo`, it finds no such runtime in them.
 */
int ctk_engine_check(struct ctk *ctk, const struct graft_engine *engine, const char *executable,
		     const struct graft_engine_request *request, const struct graft_engine_changes *changes, bool undo,
		     struct graft_error *err);

#endif
