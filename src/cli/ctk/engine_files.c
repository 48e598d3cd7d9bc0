/* SPDX-License-Identifier: Apache-2.0 */
/* engine_files: reads and replaces several files. Does not know what is in them. */
#include "cli/ctk/engine_files.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/read.h"

#define FILE_MAX ((size_t)16 << 20)
#define NEW_MODE 0644

/* The backup of a file that did not exist. */
static const char no_file[] = "# nvidia-ctk: there was no such file\n";

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
	file->is_ours = file->backup.bytes && strcmp(file->backup.bytes, no_file) == 0;
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
		size_t length = strlen(entry->d_name), end = strlen(suffix);

		if (entry->d_name[0] != '.' && strcmp(entry->d_name, name) != 0 && length > end &&
		    strcmp(entry->d_name + length - end, suffix) == 0)
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

static int save_engine_file(const struct ctk_engine_save *save, const char *backup, struct graft_error *err)
{
	const struct graft_engine_file *file = save->edit->file;
	struct graft_engine_text kept = file->text;

	if (!kept.bytes)
		kept = (struct graft_engine_text){ no_file, strlen(no_file) };
	if (save->keep && graft_host_file_write(backup, kept.bytes, kept.length, mode_of(file->path), err) < 0)
		return -1;
	return put_engine_file(file->path, &save->edit->text, err);
}

/*
 * Returns the paths of the backups, or NULL if out of memory. They are made before anything is
 * written, because undoing a failure must not fail for lack of memory.
 */
static const char **backup_paths(const struct ctk_engine_save *saves, size_t n, struct graft_arena *arena)
{
	const char **paths = graft_arena_list(arena, n, sizeof(*paths));

	for (size_t i = 0; paths && i < n; i++) {
		paths[i] = ctk_backup_path(saves[i].edit->file->path, saves[i].place, arena);
		if (!paths[i])
			return NULL;
	}
	return paths;
}

/* Errors are ignored: a remaining backup does no harm. */
static void drop_backup(const char *path, bool drop)
{
	if (drop)
		(void)graft_host_file_remove(path, NULL);
}

int ctk_engine_files_save(const struct ctk_engine_save *saves, size_t n, struct graft_arena *arena,
			  struct graft_error *err)
{
	const char **backups = backup_paths(saves, n, arena);

	if (!backups && n > 0)
		return graft_fail_memory(err);
	for (size_t i = 0; i < n; i++) {
		if (!graft_engine_edit_changes(saves[i].edit) || save_engine_file(&saves[i], backups[i], err) == 0)
			continue;
		drop_backup(backups[i], saves[i].keep);
		while (i-- > 0) {
			if (!graft_engine_edit_changes(saves[i].edit))
				continue;
			(void)put_engine_file(saves[i].edit->file->path, &saves[i].edit->file->text, NULL);
			drop_backup(backups[i], saves[i].keep);
		}
		return -1;
	}
	for (size_t i = 0; i < n; i++)
		drop_backup(backups[i], saves[i].drop);
	return 0;
}
