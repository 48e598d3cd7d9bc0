/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_imex: channels of the import/export service (SPEC libnvidia-container 9.7, SPEC
 * runtime-and-hook 7.11). A channel without its node is an error.
 */
#include <errno.h>

#include "plan/rules.h"

#define CHANNELS "/dev/nvidia-caps-imex-channels"

static const char why[] = "an IMEX channel that was asked for";

static const struct graft_node *find_channel(const struct graft_inventory *inventory, uint32_t channel)
{
	for (size_t i = 0; i < inventory->n_imex; i++) {
		if (inventory->imex[i].channel == channel)
			return &inventory->imex[i].node;
	}
	return NULL;
}

/* A channel may be requested twice (SPEC libnvidia-container 6.9); one mount is enough. */
static bool asked_before(const struct graft_request *request, size_t n, uint32_t channel)
{
	for (size_t j = 0; j < n; j++) {
		if (request->imex_channels[j].id == channel)
			return true;
	}
	return false;
}

/* Returns the major of all channels, taken from any of them; 0 if the driver has none. */
static uint32_t major_of_channels(const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_imex; i++) {
		if (inventory->imex[i].node.major != 0)
			return inventory->imex[i].node.major;
	}
	return 0;
}

static int fail_absent_channel(const struct graft_planner *planner, uint32_t channel, struct graft_error *err)
{
	uint32_t major = major_of_channels(planner->inventory);

	if (planner->oci && major != 0)
		return graft_fail(err, GRAFT_NOT_FOUND, 0,
				  "IMEX channel %u not found at " CHANNELS "/channel%u; on the host, "
				  "'mknod -m 0666 " CHANNELS "/channel%u c %u %u' makes the node",
				  channel, channel, channel, major, channel);
	if (planner->oci)
		return graft_fail(err, GRAFT_NOT_FOUND, 0,
				  "IMEX channel %u not found at " CHANNELS "/channel%u; the driver of this host has no "
				  "channels (no nvidia-caps-imex-channels in /proc/devices)",
				  channel, channel);
	return graft_fail(err, GRAFT_NOT_FOUND, ENOENT, "stat failed: " CHANNELS "/channel%u", channel);
}

static int add_all_channels(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_inventory *inventory = planner->inventory;

	for (size_t i = 0; i < inventory->n_imex; i++) {
		const struct graft_imex_node *imex = &inventory->imex[i];

		if (imex->node.present &&
		    !asked_before(planner->request, planner->request->n_imex_channels, imex->channel) &&
		    graft_plan_node(planner, &imex->node, "imex-channel", why, err) < 0)
			return -1;
	}
	return 0;
}

int graft_rule_imex(struct graft_planner *planner, struct graft_error *err)
{
	const struct graft_request *request = planner->request;

	for (size_t i = 0; i < request->n_imex_channels; i++) {
		uint32_t channel = request->imex_channels[i].id;
		const struct graft_node *node = find_channel(planner->inventory, channel);

		if (asked_before(request, i, channel))
			continue;
		if (!node || !node->present)
			return fail_absent_channel(planner, channel, err);
		if (graft_plan_node(planner, node, "imex-channel", why, err) < 0)
			return -1;
	}
	return request->all_imex_channels ? add_all_channels(planner, err) : 0;
}
