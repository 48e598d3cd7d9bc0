/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_files: an engine's configuration files on disk: read, kept, replaced all together or not at all. What they have to become is src/engine's affair.
 *
 * What a file was before it was configured is kept beside it, FILE.nvidia-ctk.bak; for a file in a directory whose files are all read (a drop-in) beside that
 * directory: CRI-O reads every file in it, whatever its name. Where there was no file, that is what is kept.
 */
#ifndef GRAFT_CLI_CTK_ENGINE_FILES_H
#define GRAFT_CLI_CTK_ENGINE_FILES_H

#include "cli/ctk/ctk.h"
#include "engine/engine.h"

#define CTK_BACKUP_SUFFIX ".nvidia-ctk.bak"

enum ctk_file_place { CTK_FILE_ALONE, CTK_FILE_IN_DROP_INS };

/* Where a file's backup is; NULL: memory. */
const char *ctk_backup_path(const char *path, enum ctk_file_place place, struct graft_arena *arena);
/* Reads a file, and its backup if there is one, into the arena. A `path` NULL leaves both empty. */
int ctk_engine_file_read(struct graft_engine_file *file, const char *path, enum ctk_file_place place,
			 struct graft_arena *arena, struct graft_error *err);

/* One edit, and where the file's backup is. */
struct ctk_engine_save {
	const struct graft_engine_edit *edit;
	enum ctk_file_place place;
	bool keep; /* configure: keep what is there, or that nothing is, as the backup first */
	bool drop; /* undo: the backup goes */
};

/*
 * Writes, or removes, the files of all edits that change them. When one fails, those before it are put back. -1: the error of the one that failed.
 */
int ctk_engine_files_save(const struct ctk_engine_save *saves, size_t n, struct graft_arena *arena,
			  struct graft_error *err);

/* Whether the directory of `path` has other files whose names end so. */
bool ctk_engine_has_neighbours(const char *path, const char *suffix);

#endif
