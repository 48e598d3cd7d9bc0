/* SPDX-License-Identifier: Apache-2.0 */
/*
 * imex: channels of the import/export service, which shares memory across nodes (SPEC
 * libnvidia-container 6.9): the requested ones, whether or not their nodes exist, and optionally
 * every node that exists.
 */
#include "host/survey.h"

#define IMEX_DEVICE "nvidia-caps-imex-channels"
#define IMEX_DIR    "/dev/nvidia-caps-imex-channels"
#define IMEX_NAME   "channel"
#define IMEX_LIMIT  (1u << 20)

static bool is_imex_channel_known(const struct graft_inventory *inventory, uint32_t channel)
{
	for (size_t i = 0; i < inventory->n_imex; i++) {
		if (inventory->imex[i].channel == channel)
			return true;
	}
	return false;
}

static void add_imex_node(struct graft_survey *survey, uint32_t channel)
{
	struct graft_inventory *inventory = survey->inventory;
	struct graft_imex_node *imex;
	struct graft_node *node;
	bool has_major;
	int rc;

	imex = graft_arena_push(survey->arena, &inventory->imex, &inventory->n_imex, sizeof(*imex));
	if (!imex)
		return;
	imex->channel = channel;
	node = &imex->node;
	node->path = graft_arena_printf(survey->arena, IMEX_DIR "/" IMEX_NAME "%u", channel);
	node->minor = channel;
	has_major = graft_survey_major(survey, IMEX_DEVICE, &node->major);
	node->source = has_major ? "/proc/devices" : node->path;
	if (!node->path)
		return;
	rc = has_major ? graft_survey_node(survey, node) : graft_survey_node_as_is(survey, node);
	if (rc < 0)
		graft_survey_omit_node(survey, node->path, rc);
}

static void add_existing(struct graft_survey *survey)
{
	uint32_t *channels;
	size_t n;

	if (graft_survey_list_numbers(survey, survey->dev, IMEX_DIR, IMEX_NAME, &channels, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (channels[i] < IMEX_LIMIT && !is_imex_channel_known(survey->inventory, channels[i]))
			add_imex_node(survey, channels[i]);
	}
}

void graft_survey_imex(struct graft_survey *survey)
{
	const struct graft_host_options *options = survey->options;

	for (size_t i = 0; i < options->n_imex_channels; i++) {
		if (!is_imex_channel_known(survey->inventory, options->imex_channels[i]))
			add_imex_node(survey, options->imex_channels[i]);
	}
	if (survey->needs & GRAFT_NEED_IMEX)
		add_existing(survey);
}
