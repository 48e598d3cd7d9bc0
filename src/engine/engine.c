/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: the list of engines, and functions that assemble their results. Knows nothing of any
 * single engine.
 */
#include "engine/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/changes.h"

const struct graft_engine *graft_engine_find(const char *name)
{
	static const struct graft_engine *const engines[] = { &graft_engine_docker, &graft_engine_containerd,
							      &graft_engine_crio, &graft_engine_podman };

	for (size_t i = 0; i < GRAFT_COUNT(engines); i++) {
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	}
	return NULL;
}

bool graft_engine_edit_changes(const struct graft_engine_edit *edit)
{
	const struct graft_engine_text *before = &edit->file->text, *after = &edit->text;

	if (!before->bytes || !after->bytes)
		return before->bytes || after->bytes;
	return before->length != after->length || memcmp(before->bytes, after->bytes, after->length) != 0;
}

int engine_note(struct graft_engine_changes *changes, struct graft_arena *arena, enum note_kind kind,
		struct graft_error *err, const char *format, ...)
{
	struct graft_engine_note *note = graft_arena_push(arena, &changes->notes, &changes->n_notes, sizeof(*note));
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!note)
		return graft_fail_memory(err);
	note->is_warning = kind == ENGINE_WARNS;
	note->text = graft_arena_strdup(arena, text);
	return note->text ? 0 : graft_fail_memory(err);
}

int engine_edit(struct graft_engine_changes *changes, struct graft_arena *arena, const struct graft_engine_file *file,
		const char *label, const char *bytes, size_t length, struct graft_error *err)
{
	struct graft_engine_edit *edit = &changes->edits[changes->n_edits];

	*edit = (struct graft_engine_edit){ .file = file, .label = label };
	if (bytes) {
		edit->text.bytes = graft_arena_strndup(arena, bytes, length);
		edit->text.length = length;
		if (!edit->text.bytes)
			return graft_fail_memory(err);
	}
	changes->n_edits++;
	return 0;
}

const char *engine_directory_of(const char *path, struct graft_arena *arena)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return graft_arena_strdup(arena, ".");
	return graft_arena_strndup(arena, path, slash == path ? 1 : (size_t)(slash - path));
}
