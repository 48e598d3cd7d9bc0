/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_check: queries an engine's own program about configurations: the one in effect, the
 * engine's version, and whether it accepts files that are not installed yet.
 */
#ifndef GRAFT_CLI_CTK_ENGINE_CHECK_H
#define GRAFT_CLI_CTK_ENGINE_CHECK_H

#include "cli/ctk/ctk.h"
#include "engine/engine.h"

/* Logs the notes for the user. */
void ctk_engine_tell_notes(const struct ctk *ctk, const struct graft_engine_changes *changes);

/*
 * Reads the configuration that the engine reports ("containerd config dump", "crio status config")
 * into request->source and request->source_name, in the arena of `ctk`. `executable` NULL: its
 * usual name. Returns 0, or -1 if the program cannot be run or fails: "failed to run command EXE
 * [config dump]: ...".
 */
int ctk_engine_read_source(struct ctk *ctk, const struct graft_engine *engine, const char *executable,
			   struct graft_engine_request *request, struct graft_error *err);

/*
 * Finds out whether the installed containerd merges files key by key; *ret_deeply is false if
 * containerd is not installed or does not report its version. Returns 0, or -1 with
 * GRAFT_NO_MEMORY.
 */
int ctk_engine_merges_deeply(struct ctk *ctk, const char *executable, bool *ret_deeply, struct graft_error *err);

/*
 * Has the engine's program read the files as the edits make them, in a private directory. Returns 0
 * if it accepts them, and also if it is not installed or cannot check them (logged at debug level).
 * Returns -1 if it rejects them, with its message; or, unless `undo`, if it finds no such runtime
 * in them.
 */
int ctk_engine_check(struct ctk *ctk, const struct graft_engine *engine, const char *executable,
		     const struct graft_engine_request *request, const struct graft_engine_changes *changes, bool undo,
		     struct graft_error *err);

#endif
