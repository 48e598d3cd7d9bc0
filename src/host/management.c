/* SPDX-License-Identifier: Apache-2.0 */
/*
 * management: every device node of the driver that exists, recognised by name alone, for containers
 * that manage all GPUs of a host (SPEC ctk-and-cdi 4.8). This includes nodes of GPUs that procfs
 * does not list: the driver may find them later.
 */
#include <string.h>

#include "host/catalog.h"
#include "host/survey.h"

static const struct graft_catalog_management_node *find_management_row(const char *directory, const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_management_nodes; i++) {
		const struct graft_catalog_management_node *row = &graft_catalog_management_nodes[i];

		if (strcmp(row->directory, directory) == 0 && strncmp(row->name, name, strlen(row->name)) == 0)
			return row;
	}
	return NULL;
}

static void look_in_management_directory(struct graft_survey *survey, const char *directory)
{
	struct graft_inventory *inventory = survey->inventory;
	const char **names;
	size_t n;

	if (graft_survey_list(survey, survey->dev, directory, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct graft_catalog_management_node *row = find_management_row(directory, names[i]);

		if (row && !row->left_out)
			graft_survey_add_node(survey, graft_arena_printf(survey->arena, "%s/%s", directory, names[i]),
					      &inventory->management_nodes, &inventory->n_management_nodes);
	}
}

/* Rows of one directory are adjacent. */
void graft_survey_management(struct graft_survey *survey)
{
	const char *done = "";

	for (size_t i = 0; i < graft_n_catalog_management_nodes; i++) {
		const char *directory = graft_catalog_management_nodes[i].directory;

		if (strcmp(directory, done) != 0)
			look_in_management_directory(survey, directory);
		done = directory;
	}
}
