/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_files: an engine's configuration files on disk: read, backed up, and replaced all together
 * or not at all. src/engine decides on their content.
 *
 * The original of a file is kept next to it as FILE.nvidia-ctk.bak. The backup of a drop-in is next
 * to its directory, because CRI-O reads every file in that, whatever its name. If there was no
 * file, the backup records that.
 */
#ifndef GRAFT_CLI_CTK_ENGINE_FILES_H
#define GRAFT_CLI_CTK_ENGINE_FILES_H

#include "cli/ctk/ctk.h"
#include "engine/engine.h"

#define CTK_BACKUP_SUFFIX ".nvidia-ctk.bak"

enum ctk_file_place { CTK_FILE_ALONE, CTK_FILE_IN_DROP_INS };

/* Returns the path of a file's backup, in the arena, or NULL if out of memory. */
const char *ctk_backup_path(const char *path, enum ctk_file_place place, struct graft_arena *arena);
/*
 * Reads a file, and its backup if there is one, into the arena. With `path` NULL both are empty.
 * With `only_shown` the file will not be written, so it may be a pipe, or "-" for standard input;
 * otherwise these are refused. Returns 0, or -1 with the error set.
 */
int ctk_engine_file_read(struct graft_engine_file *file, const char *path, enum ctk_file_place place, bool only_shown,
			 struct graft_arena *arena, struct graft_error *err);

/* One edit, and the place of the file's backup. */
struct ctk_engine_save {
	const struct graft_engine_edit *edit;
	enum ctk_file_place place;
	bool keep; /* configure: first back up the file, or the fact that there is none */
	bool drop; /* undo: remove the backup */
};

/*
 * Writes or removes the files of all edits that change something. If one fails, the earlier ones
 * are restored. Returns 0, or -1 with the error of the one that failed.
 */
int ctk_engine_files_save(const struct ctk_engine_save *saves, size_t n, struct graft_arena *arena,
			  struct graft_error *err);

/* Returns whether the directory of `path` contains other files whose names end in `suffix`. */
bool ctk_engine_has_neighbours(const char *path, const char *suffix);

#endif
