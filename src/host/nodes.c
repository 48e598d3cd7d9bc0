/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes: the device nodes that belong to the driver as a whole (SPEC libnvidia-container 6.7). They
 * are examined without being opened.
 */
#include <errno.h>
#include <string.h>

#include "host/catalog.h"
#include "host/survey.h"

static void add_catalog_node(struct graft_survey *survey, const struct graft_node *node)
{
	struct graft_inventory *inventory = survey->inventory;
	struct graft_node *copy;

	copy = graft_arena_push(survey->arena, &inventory->nodes, &inventory->n_nodes, sizeof(*copy));
	if (copy)
		*copy = *node;
	graft_info(survey->log, "listing device %s", node->path);
}

/*
 * A node with fixed numbers is listed even if it does not exist: its path is known, and loading the
 * kernel modules may create it.
 */
static void look_fixed(struct graft_survey *survey, const struct graft_catalog_node *row)
{
	struct graft_node node = {
		.path = row->path, .major = row->major, .minor = row->minor, .source = "fixed number"
	};
	int rc = graft_survey_node(survey, &node);

	if (rc < 0)
		graft_survey_omit_node(survey, row->path, rc);
	if (rc == 0 || row->assumed)
		add_catalog_node(survey, &node);
}

static void look_as_is(struct graft_survey *survey, const struct graft_catalog_node *row)
{
	struct graft_node node = { .path = row->path, .source = row->path };
	int rc = graft_survey_node_as_is(survey, &node);
	uint32_t major;

	if (rc < 0) {
		graft_survey_omit(survey, "missing device", row->path, "%s",
				  rc == -ENODEV ? "it is not a character device" : strerror(-rc));
		return;
	}
	if (graft_survey_major(survey, row->devices_name, &major) && major != node.major) {
		graft_survey_omit(survey, "missing device", row->path, "its major is %u, that of %s is %u", node.major,
				  row->devices_name, major);
		return;
	}
	add_catalog_node(survey, &node);
}

void graft_survey_nodes(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;

	if (inventory->platform == GRAFT_PLATFORM_WSL2) {
		graft_survey_add_node(survey, "/dev/dxg", &inventory->nodes, &inventory->n_nodes);
		return;
	}
	if (inventory->platform == GRAFT_PLATFORM_TEGRA) {
		graft_survey_tegra_nodes(survey);
		return;
	}
	for (size_t i = 0; i < graft_n_catalog_nodes; i++) {
		const struct graft_catalog_node *row = &graft_catalog_nodes[i];

		if (graft_survey_disabled(survey, row->disabled_by))
			continue;
		if (row->devices_name)
			look_as_is(survey, row);
		else
			look_fixed(survey, row);
	}
}
