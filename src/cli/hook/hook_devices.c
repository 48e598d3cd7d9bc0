/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_devices: selects the nodes of a plan that have a device rule. apply/dev_char makes the
 * links; systemd is left to configure.
 */
#include "cli/hook/hook.h"

#include <stdlib.h>

#include "apply/dev_char.h"
#include "base/caps.h"
#include "base/cleanup.h"

/*
 * The host's node for the device of a rule; NULL if the plan has none, because others bind the
 * nodes.
 */
static const char *node_of(const struct graft_plan *plan, const struct graft_edit *rule)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_DEVICE && edit->major == rule->major && edit->minor == rule->minor)
			return edit->source;
	}
	return NULL;
}

static void make_device_links(struct cli *cli, const struct graft_dev_char *nodes, size_t n)
{
	struct graft_error err = { .status = GRAFT_OK };
	char text[sizeof(err.msg) + sizeof(err.ctx) + 128];

	if (graft_dev_char_make(nodes, n, cli->log, &err) < 0)
		graft_warn(cli->log, "no links in /dev/char: %s", graft_error_text(&err, text, sizeof(text)));
}

void hook_announce_devices(struct cli *cli, const struct graft_plan *plan)
{
	auto_free struct graft_dev_char *nodes = calloc(plan->n_edits + 1, sizeof(*nodes));
	size_t n = 0;

	for (size_t i = 0; nodes && i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		const char *path = edit->kind == GRAFT_EDIT_CGROUP ? node_of(plan, edit) : NULL;

		if (path)
			nodes[n++] = (struct graft_dev_char){ edit->major, edit->minor, path };
	}
	/* An ordinary user cannot change /dev. */
	if (n == 0 || graft_caps_is_unprivileged() || graft_caps_enter(&cli->caps, GRAFT_CAPS_MOUNT, NULL) < 0)
		return;
	make_device_links(cli, nodes, n);
}
