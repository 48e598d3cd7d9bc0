/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xorg: the driver's modules for the X server (SPEC runtime-and-hook 7.5). They are below the
 * directories of the driver's libraries or in the directories that X servers search; the first
 * directory that has one wins.
 */
#include <string.h>

#include "base/strings.h"
#include "host/catalog.h"
#include "host/survey.h"

struct places {
	const char **items;
	size_t n;
};

static void add_place(struct graft_survey *survey, struct places *places, const char *path)
{
	if (path && !graft_is_in(places->items, places->n, path))
		(void)graft_arena_push_string(survey->scratch, &places->items, &places->n, path);
}

/*
 * Lists the places below each directory that has a library of the driver, in the order of the
 * libraries, then the fixed ones; each once.
 */
static void list_xorg_places(struct graft_survey *survey, struct places *places)
{
	const struct graft_inventory *inventory = survey->inventory;
	const char *before = "";
	size_t before_length = 0;

	for (size_t i = 0; i < inventory->n_libraries; i++) {
		const char *path = inventory->libraries[i].path;
		size_t length = (size_t)(strrchr(path, '/') - path);

		if (length == before_length && memcmp(path, before, length) == 0)
			continue;
		before = path;
		before_length = length;
		for (size_t j = 0; j < graft_n_catalog_xorg_below; j++)
			add_place(survey, places,
				  graft_arena_printf(survey->scratch, "%.*s/%s", (int)length, path,
						     graft_catalog_xorg_below[j]));
	}
	for (size_t i = 0; i < graft_n_catalog_xorg_directories; i++)
		add_place(survey, places, graft_catalog_xorg_directories[i]);
}

static void look_for_xorg_module(struct graft_survey *survey, const struct places *places,
				 const struct graft_catalog_module *row)
{
	struct graft_inventory *inventory = survey->inventory;
	const char *name = row->version ? graft_arena_printf(survey->scratch, "%s.%s", row->name,
							     inventory->driver_version.value)
					: row->name;

	for (size_t i = 0; name && i < places->n; i++) {
		const char *wanted = graft_arena_printf(survey->arena, "%s/%s", places->items[i], name);
		const char *path;
		struct stat st;

		if (!wanted || graft_lookup_path(&survey->lookup, wanted, &path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		graft_survey_add_extra_file(survey, path, wanted, GRAFT_CLASS_GRAPHICS, wanted);
		return;
	}
	if (name)
		graft_survey_omit(survey, "missing file", name, "no directory of X server modules has it");
}

void graft_survey_xorg(struct graft_survey *survey)
{
	struct places places = { .n = 0 };

	if (survey->inventory->platform != GRAFT_PLATFORM_NATIVE || !survey->inventory->driver_version.value ||
	    !graft_survey_wants(survey, GRAFT_CLASS_GRAPHICS))
		return;
	list_xorg_places(survey, &places);
	for (size_t i = 0; i < graft_n_catalog_xorg_modules; i++)
		look_for_xorg_module(survey, &places, &graft_catalog_xorg_modules[i]);
}
