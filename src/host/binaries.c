/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binaries: finds the driver's programs in the caller's PATH, then in the usual directories, all
 * below the driver root (SPEC libnvidia-container 6.2). The first directory that has a name wins,
 * but a script only where no other directory has the program.
 */
#include <string.h>

#include "host/catalog.h"
#include "host/survey.h"

#define DIRECTORIES_MAX 64
#define WRAPPER_MAX     4096

struct directories {
	const struct graft_lookup_directory *items[DIRECTORIES_MAX];
	size_t n;
};

static void add_directory(struct graft_survey *survey, struct directories *directories, const char *path, size_t length)
{
	const struct graft_lookup_directory *directory;

	/*
	 * SECURITY: relative and empty items refer to the caller's working directory, which is
	 * arbitrary in a hook.
	 */
	if (length == 0 || path[0] != '/' || directories->n == DIRECTORIES_MAX)
		return;
	directory = graft_lookup_directory(&survey->lookup, path, length);
	if (!directory || directory->fd < 0)
		return;
	for (size_t i = 0; i < directories->n; i++) {
		if (strcmp(directories->items[i]->resolved, directory->resolved) == 0)
			return;
	}
	directories->items[directories->n++] = directory;
}

static void list_directories(struct graft_survey *survey, struct directories *directories)
{
	const char *path = survey->options->path;

	directories->n = 0;
	if (survey->wsl_store)
		add_directory(survey, directories, survey->wsl_store, strlen(survey->wsl_store));
	while (path && *path != '\0') {
		size_t length = strcspn(path, ":");

		add_directory(survey, directories, path, length);
		path += length + (path[length] == ':' ? 1 : 0);
	}
	for (size_t i = 0; i < graft_n_catalog_binary_directories; i++)
		add_directory(survey, directories, graft_catalog_binary_directories[i].path,
			      strlen(graft_catalog_binary_directories[i].path));
}

/*
 * A script that starts the program from elsewhere on the host (/usr/bin/nvidia-smi that executes
 * /usr/local/nvidia/bin/nvidia-smi) fails in a container. Only small files are read: no program of
 * a driver is.
 */
static bool is_wrapper(const struct graft_survey *survey, const char *path, const struct stat *st)
{
	const char *bytes;
	size_t length;

	return st->st_size > 2 && st->st_size <= WRAPPER_MAX &&
	       graft_root_read(survey->lookup.root, path, WRAPPER_MAX, survey->arena, &bytes, &length) == 0 &&
	       length > 2 && memcmp(bytes, "#!", 2) == 0;
}

static void look_up_binary(struct graft_survey *survey, const struct directories *directories,
			   const struct graft_catalog_binary *row)
{
	struct graft_inventory *inventory = survey->inventory;
	struct graft_binary found = { .name = row->name, .class_ = row->class_ }, *binary;

	for (size_t i = 0; i < directories->n; i++) {
		const char *path;
		struct stat st;
		bool wrapper;

		if (graft_lookup_file(&survey->lookup, directories->items[i], row->name, &path, &st) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		wrapper = is_wrapper(survey, path, &st);
		if (!wrapper || !found.path) {
			found.path = path;
			found.source = directories->items[i]->path;
		}
		if (!wrapper)
			break;
	}
	if (!found.path) {
		graft_survey_omit(survey, "missing binary", row->name,
				  "it is in no directory of PATH and in none of the usual ones");
		return;
	}
	binary = graft_arena_push(survey->arena, &inventory->binaries, &inventory->n_binaries, sizeof(*binary));
	if (!binary)
		return;
	*binary = found;
	graft_info(survey->log, "selecting %s", found.path);
}

void graft_survey_binaries(struct graft_survey *survey)
{
	struct directories directories;

	list_directories(survey, &directories);
	for (size_t i = 0; i < graft_n_catalog_binaries; i++) {
		const struct graft_catalog_binary *row = &graft_catalog_binaries[i];

		if ((row->capabilities & survey->options->capabilities) != 0 &&
		    (row->needs & survey->needs) == row->needs && !graft_survey_disabled(survey, row->disabled_by))
			look_up_binary(survey, &directories, row);
	}
}
