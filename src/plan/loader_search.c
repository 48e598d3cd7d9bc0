/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_search: compares directories with what an image's loader already searches. Knows only the
 * image's facts and the edit.
 */
#include "plan/loader_search.h"

#include <string.h>

/* Musl's search path if no file sets it */
#define MUSL_DEFAULT_PATH "/lib\n/usr/local/lib\n/usr/lib"

static bool is_same_folder(const char *a, size_t a_length, const char *b)
{
	size_t b_length = strlen(b);

	while (a_length > 1 && a[a_length - 1] == '/')
		a_length--;
	while (b_length > 1 && b[b_length - 1] == '/')
		b_length--;
	return a_length == b_length && memcmp(a, b, a_length) == 0;
}

bool graft_loader_add_folder(struct graft_arena *arena, struct graft_edit *edit, const char *folder)
{
	for (size_t i = 0; i < edit->n_folders; i++) {
		if (is_same_folder(folder, strlen(folder), edit->folders[i]))
			return true;
	}
	return graft_arena_push_string(arena, &edit->folders, &edit->n_folders, folder) != NULL;
}

static bool is_listed(const char *folder, const char *const *dirs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_same_folder(folder, strlen(folder), dirs[i]))
			return true;
	return false;
}

/*
 * Directories that were added earlier are missing, too: the file that names them is rewritten with
 * what is missing now.
 */
static void note_missing_folders(struct graft_arena *arena, const struct graft_image *image, struct graft_edit *edit)
{
	for (size_t i = 0; i < edit->n_folders; i++) {
		if (!is_listed(edit->folders[i], image->loader_dirs, image->n_loader_dirs))
			(void)graft_arena_push_string(arena, &edit->missing_folders, &edit->n_missing_folders,
						      edit->folders[i]);
	}
}

/*
 * Returns whether a path list, separated by colons or newlines as musl reads it, contains a
 * directory.
 */
static bool path_has(const char *list, const char *directory)
{
	for (const char *at = list; *at != '\0';) {
		size_t length = strcspn(at, ":\n");

		if (length > 0 && is_same_folder(at, length, directory))
			return true;
		at += length;
		at += strspn(at, ":\n");
	}
	return false;
}

/*
 * The image's own directories come first and are kept: they have the libraries that its programs
 * were built with.
 */
static void extend_musl_path(struct graft_arena *arena, const struct graft_image *image, struct graft_edit *edit)
{
	const char *text = image->musl_path ? image->musl_path : MUSL_DEFAULT_PATH;

	for (size_t i = 0; i < edit->n_folders && text; i++) {
		size_t length = strlen(text);

		if (path_has(text, edit->folders[i]))
			continue;
		while (length > 0 && text[length - 1] == '\n')
			length--;
		text = graft_arena_printf(arena, "%.*s%s%s\n", (int)length, text, length > 0 ? "\n" : "",
					  edit->folders[i]);
	}
	edit->musl_path_file = graft_arena_strdup(arena, image->musl_path_file);
	edit->musl_path = graft_arena_strdup(arena, text);
	edit->entries = NULL;
	edit->n_entries = 0;
}

bool graft_loader_is_musl(const struct graft_image *image)
{
	return image->libc == GRAFT_LIBC_MUSL && image->musl_path_file;
}

bool graft_loader_was_added(const struct graft_image *image, const char *folder)
{
	return is_listed(folder, image->added_dirs, image->n_added_dirs);
}

void graft_loader_search(struct graft_arena *arena, const struct graft_image *image, struct graft_edit *edit)
{
	if (graft_loader_is_musl(image))
		extend_musl_path(arena, image, edit);
	else
		note_missing_folders(arena, image, edit);
}
