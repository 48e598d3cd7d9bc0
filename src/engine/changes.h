/* SPDX-License-Identifier: Apache-2.0 */
/* changes: how the engines assemble their results. For src/engine only. */
#ifndef GRAFT_ENGINE_CHANGES_H
#define GRAFT_ENGINE_CHANGES_H

#include "engine/engine.h"

enum note_kind { ENGINE_TELLS, ENGINE_WARNS };

/* Adds a line for a person. Returns 0, or -1 if out of memory. */
__attribute__((format(printf, 5, 6))) int engine_note(struct graft_engine_changes *changes, struct graft_arena *arena,
						      enum note_kind kind, struct graft_error *err, const char *format,
						      ...);
/*
 * Adds an edit with a text of `length` bytes, which are copied; `bytes` NULL: the file is to be
 * removed. Returns 0, or -1 if out of memory.
 */
int engine_edit(struct graft_engine_changes *changes, struct graft_arena *arena, const struct graft_engine_file *file,
		const char *label, const char *bytes, size_t length, struct graft_error *err);

/* Returns the directory of a path: "/etc" for "/etc/x", "." for "x". NULL: no memory. */
const char *engine_directory_of(const char *path, struct graft_arena *arena);

#endif
