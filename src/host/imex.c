/* SPDX-License-Identifier: Apache-2.0 */
/*
 * imex: channels of the import/export service, which shares memory across nodes (SPEC
 * libnvidia-container 6.9): the requested ones, whether or not their nodes exist, and optionally
 * every node that exists.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/survey.h"

#define IMEX_DEVICE "nvidia-caps-imex-channels"
#define IMEX_DIR    "/dev/nvidia-caps-imex-channels"
#define IMEX_NAME   "channel"
#define IMEX_LIMIT  (1ul << 20)

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
		graft_survey_omit(survey, "missing device", node->path, "%s",
				  rc == -ENODEV ? "it is another device" : strerror(-rc));
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t ua = *(const uint32_t *)a, ub = *(const uint32_t *)b;

	return ua < ub ? -1 : ua > ub;
}

static void add_existing(struct graft_survey *survey)
{
	uint32_t *channels = NULL;
	const char **names;
	size_t n_names, n = 0;

	if (graft_survey_list(survey, survey->dev, IMEX_DIR, &names, &n_names) < 0)
		return;
	for (size_t i = 0; i < n_names; i++) {
		const char *digits = names[i] + strlen(IMEX_NAME);
		unsigned long channel;
		uint32_t *slot;
		char *end;

		if (strncmp(names[i], IMEX_NAME, strlen(IMEX_NAME)) != 0 || !isdigit((unsigned char)digits[0]))
			continue;
		channel = strtoul(digits, &end, 10);
		if (*end != '\0' || channel >= IMEX_LIMIT)
			continue;
		slot = graft_arena_push(survey->scratch, &channels, &n, sizeof(*slot));
		if (slot)
			*slot = (uint32_t)channel;
	}
	if (n > 1)
		qsort(channels, n, sizeof(*channels), compare_u32);
	for (size_t i = 0; i < n; i++) {
		if (!is_imex_channel_known(survey->inventory, channels[i]))
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
