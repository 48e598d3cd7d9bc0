/* SPDX-License-Identifier: Apache-2.0 */
/* engine_files: reads and replaces several files. Does not know what is in them. */
#include "cli/ctk/engine_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/read.h"
#include "base/strings.h"

#define FILE_MAX ((size_t)16 << 20)
#define NEW_MODE 0644

/*
 * The backup of a file that did not exist. If directories were missing too, a second line has the
 * uppermost of them, so that undo removes what was created.
 */
#define NO_FILE   "# nvidia-ctk: there was no such file\n"
#define NO_FOLDER "# nvidia-ctk: there was no folder "

const char *ctk_backup_path(const char *path, enum ctk_file_place place, struct graft_arena *arena)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *end = slash;

	if (place == CTK_FILE_ALONE || !slash || slash == path)
		return graft_arena_printf(arena, "%s" CTK_BACKUP_SUFFIX, path);
	while (end > path && end[-1] == '/')
		end--;
	while (end > path && end[-1] != '/')
		end--;
	return graft_arena_printf(arena, "%.*s%s" CTK_BACKUP_SUFFIX, (int)(end - path), path, name);
}

static int read_engine_stream(struct graft_engine_file *file, bool only_shown, struct graft_arena *arena,
			      struct graft_error *err)
{
	const char *path = file->path;
	int rc;

	file->path = graft_input_name(path);
	if (!only_shown)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "%s is not a file, so it cannot be changed; --dry-run prints the result", file->path);
	rc = graft_read_input(path, FILE_MAX, arena, &file->text.bytes, &file->text.length);
	return rc < 0 ? graft_fail_errno(err, -rc, "unable to read config: cannot read %s", file->path) : 0;
}

int ctk_engine_file_read(struct graft_engine_file *file, const char *path, enum ctk_file_place place, bool only_shown,
			 struct graft_arena *arena, struct graft_error *err)
{
	const char *backup;

	*file = (struct graft_engine_file){ .path = path };
	if (!path)
		return 0;
	if (graft_is_stream(path))
		return read_engine_stream(file, only_shown, arena, err);
	backup = ctk_backup_path(path, place, arena);
	if (!backup)
		return graft_fail_memory(err);
	if (graft_host_file_read(path, FILE_MAX, arena, &file->text.bytes, &file->text.length, err) < 0)
		return graft_wrap(err, "unable to read config");
	if (graft_host_file_read(backup, FILE_MAX, arena, &file->backup.bytes, &file->backup.length, err) < 0)
		return -1;
	file->is_ours = file->backup.bytes && graft_starts_with(file->backup.bytes, NO_FILE);
	if (file->is_ours)
		file->backup = (struct graft_engine_text){ NULL, 0 };
	return 0;
}

bool ctk_engine_has_neighbours(const char *path, const char *suffix)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	auto_free char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	auto_dir DIR *dir = directory ? opendir(directory) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, name) != 0 &&
		    graft_ends_with(entry->d_name, suffix))
			return true;
	}
	return false;
}

/* A file may contain secrets, so its backup gets the same mode. */
static mode_t mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_mode & 0777 : NEW_MODE;
}

static int put_engine_file(const char *path, const struct graft_engine_text *text, struct graft_error *err)
{
	if (text->bytes)
		return graft_host_file_write(path, text->bytes, text->length, NEW_MODE, err);
	if (graft_host_file_remove(path, err) < 0)
		return graft_wrap(err, "unable to remove empty file");
	return 0;
}

/* ---- directories ---- */

/* The uppermost directory above `path` that does not exist, or NULL. */
static const char *missing_folder(const char *path, struct graft_arena *arena)
{
	const char *folder = path, *missing = NULL;
	struct stat st;

	while ((folder = graft_path_directory(folder, arena)) != NULL && stat(folder, &st) < 0 && errno == ENOENT)
		missing = folder;
	return missing;
}

/* The directory that the backup of `path` names, or NULL. */
static const char *folder_in_backup(const char *backup, struct graft_arena *arena)
{
	const size_t start = strlen(NO_FILE NO_FOLDER);
	const char *bytes;
	size_t length;

	if (graft_host_file_read(backup, FILE_MAX, arena, &bytes, &length, NULL) <= 0 ||
	    !graft_starts_with(bytes, NO_FILE NO_FOLDER) || bytes[length - 1] != '\n')
		return NULL;
	return graft_arena_printf(arena, "%.*s", (int)(length - start - 1), bytes + start);
}

/*
 * Removes the directories from that of `path` up to `last`, as long as they are empty. Errors are
 * ignored: a remaining directory does no harm. The backup may have been edited, so `last` has to be
 * above `path`.
 */
static void remove_folders(const char *path, const char *last, struct graft_arena *arena)
{
	const char *folder = graft_path_directory(path, arena);
	size_t length = last ? strlen(last) : 0;

	if (!folder || length == 0 || strncmp(folder, last, length) != 0 ||
	    (folder[length] != '\0' && folder[length] != '/'))
		return;
	while (folder && strlen(folder) >= length && graft_host_folder_remove(folder, NULL) == 0)
		folder = graft_path_directory(folder, arena);
}

/* ---- several files ---- */

/* What is next to a file, or above it. */
struct surroundings {
	const char *backup; /* its path */
	const char *folder; /* the uppermost that is missing before the file is written, and to be removed with it */
};

static int save_engine_file(const struct ctk_engine_save *save, struct surroundings *around, struct graft_arena *arena,
			    struct graft_error *err)
{
	const struct graft_engine_file *file = save->edit->file;
	struct graft_engine_text kept = file->text;

	if (save->keep) {
		around->folder = missing_folder(file->path, arena);
		if (!kept.bytes)
			kept.bytes = around->folder
					 ? graft_arena_printf(arena, NO_FILE NO_FOLDER "%s\n", around->folder)
					 : NO_FILE;
		if (!kept.bytes)
			return graft_fail_memory(err);
		if (!file->text.bytes)
			kept.length = strlen(kept.bytes);
		if (graft_host_file_write(around->backup, kept.bytes, kept.length, mode_of(file->path), err) < 0)
			return -1;
	}
	return put_engine_file(file->path, &save->edit->text, err);
}

/*
 * Returns NULL if out of memory. The paths are made before anything is written, because undoing a
 * failure must not fail for lack of memory.
 */
static struct surroundings *find_surroundings(const struct ctk_engine_save *saves, size_t n, struct graft_arena *arena)
{
	struct surroundings *around = graft_arena_list(arena, n, sizeof(*around));

	for (size_t i = 0; around && i < n; i++) {
		around[i].backup = ctk_backup_path(saves[i].edit->file->path, saves[i].place, arena);
		if (!around[i].backup)
			return NULL;
		around[i].folder = saves[i].drop ? folder_in_backup(around[i].backup, arena) : NULL;
	}
	return around;
}

/* Errors are ignored: a remaining backup does no harm. */
static void drop_backup(const struct surroundings *around, bool drop)
{
	if (drop)
		(void)graft_host_file_remove(around->backup, NULL);
}

/* Restores the first `n` files. */
static void restore_files(const struct ctk_engine_save *saves, const struct surroundings *around, size_t n,
			  struct graft_arena *arena)
{
	while (n-- > 0) {
		const struct graft_engine_file *file = saves[n].edit->file;

		if (!graft_engine_edit_changes(saves[n].edit))
			continue;
		(void)put_engine_file(file->path, &file->text, NULL);
		drop_backup(&around[n], saves[n].keep);
		if (saves[n].keep)
			remove_folders(file->path, around[n].folder, arena);
	}
}

int ctk_engine_files_save(const struct ctk_engine_save *saves, size_t n, struct graft_arena *arena,
			  struct graft_error *err)
{
	struct surroundings *around = find_surroundings(saves, n, arena);

	if (!around && n > 0)
		return graft_fail_memory(err);
	for (size_t i = 0; i < n; i++) {
		if (!graft_engine_edit_changes(saves[i].edit) ||
		    save_engine_file(&saves[i], &around[i], arena, err) == 0)
			continue;
		drop_backup(&around[i], saves[i].keep);
		if (saves[i].keep)
			remove_folders(saves[i].edit->file->path, around[i].folder, arena);
		restore_files(saves, around, i, arena);
		return -1;
	}
	for (size_t i = 0; i < n; i++)
		drop_backup(&around[i], saves[i].drop);
	/* The directory of the first file may be above that of the second. */
	for (size_t i = n; i-- > 0;) {
		if (saves[i].drop)
			remove_folders(saves[i].edit->file->path, around[i].folder, arena);
	}
	return 0;
}
