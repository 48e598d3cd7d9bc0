/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extra_files: files that programs expect at fixed places: descriptions of the Vulkan, EGL and
 * OpenCL drivers, and their data. Each is taken from the first data directory that has it.
 */
#include <string.h>

#include "host/catalog.h"
#include "host/survey.h"

/*
 * Takes the file if the directory has it. `directory_target`: where files of that directory belong
 * in a container; NULL = at the same path.
 */
static bool look_in_data_directory(struct graft_survey *survey, const struct graft_catalog_extra *row,
				   const char *directory, const char *directory_target)
{
	const char *found = graft_arena_printf(survey->arena, "%s/%s", directory, row->name);
	const char *place = row->target ? row->target : directory_target, *target = found, *path;
	struct stat st;

	if (!found || graft_lookup_path(&survey->lookup, found, &path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (place)
		target = graft_arena_printf(survey->arena, "%s/%s", place, row->name);
	graft_survey_add_extra_file(survey, path, target, row->class_, found);
	return true;
}

static void look_for_extra_file(struct graft_survey *survey, const struct graft_catalog_extra *row)
{
	const struct graft_host_options *options = survey->options;

	for (size_t i = 0; i < options->n_data_directories; i++) {
		if (look_in_data_directory(survey, row, options->data_directories[i], NULL))
			return;
	}
	for (size_t i = 0; options->n_data_directories == 0 && i < graft_n_catalog_data_directories; i++) {
		const struct graft_catalog_directory *directory = &graft_catalog_data_directories[i];

		if (look_in_data_directory(survey, row, directory->path, directory->target))
			return;
	}
	graft_survey_omit(survey, "missing file", row->name, "it is in none of the data directories");
}

void graft_survey_extra_files(struct graft_survey *survey)
{
	if (survey->inventory->platform == GRAFT_PLATFORM_WSL2)
		return;
	for (size_t i = 0; i < graft_n_catalog_extras; i++) {
		const struct graft_catalog_extra *row = &graft_catalog_extras[i];

		if (graft_survey_wants(survey, row->class_) && (row->needs & survey->needs) == row->needs)
			look_for_extra_file(survey, row);
	}
}
