/* SPDX-License-Identifier: Apache-2.0 */
/* devices: the device rules of a plan, in the words of those who have to know them. How links are made and systemd is spoken to, others know. */
#include "cli/hook/devices.h"

#include <stdbool.h>
#include <stdlib.h>

#include "apply/dev_char.h"
#include "apply/systemd_scope.h"
#include "base/caps.h"
#include "base/cleanup.h"

/* The node of that number on the host; NULL when the plan shows none (nodes are somebody else's work). */
static const char *node_of(const struct graft_plan *plan, const struct graft_edit *rule)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_DEVICE && edit->major == rule->major && edit->minor == rule->minor)
			return edit->source;
	}
	return NULL;
}

static void make_links(struct cli *cli, const struct graft_dev_char *nodes, size_t n)
{
	struct graft_error err = { .status = GRAFT_OK };
	char text[sizeof(err.msg) + sizeof(err.ctx) + 128];

	if (graft_dev_char_make(nodes, n, cli->log, &err) < 0)
		graft_warn(cli->log, "no links in /dev/char: %s", graft_error_text(&err, text, sizeof(text)));
}

static void link_devices(struct cli *cli, const struct graft_plan *plan)
{
	auto_free struct graft_dev_char *nodes = calloc(plan->n_edits + 1, sizeof(*nodes));
	size_t n = 0;

	for (size_t i = 0; nodes && i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		const char *path = edit->kind == GRAFT_EDIT_CGROUP ? node_of(plan, edit) : NULL;

		if (path)
			nodes[n++] = (struct graft_dev_char){ edit->major, edit->minor, path };
	}
	if (n > 0)
		make_links(cli, nodes, n);
}

/* The rules themselves are added to the cgroup later, when the container is entered; systemd would have taken them away again. */
static void tell_systemd(struct cli *cli, const struct graft_plan *plan, pid_t pid)
{
	auto_free struct graft_scope_device *devices = calloc(plan->n_edits + 1, sizeof(*devices));
	struct graft_error err = { .status = GRAFT_OK };
	char text[sizeof(err.msg) + sizeof(err.ctx) + 128];
	size_t n = 0;

	for (size_t i = 0; devices && i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_CGROUP)
			devices[n++] = (struct graft_scope_device){ .major = edit->major,
								    .minor = edit->minor,
								    .path = node_of(plan, edit),
								    .access = edit->access ? edit->access : "rw" };
	}
	if (graft_systemd_scope_allow(pid, devices, n, cli->log, &err) < 0)
		graft_warn(cli->log, "the container may lose its devices at the next 'systemctl daemon-reload': %s",
			   graft_error_text(&err, text, sizeof(text)));
}

static bool has_rules(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++)
		if (plan->edits[i].kind == GRAFT_EDIT_CGROUP)
			return true;
	return false;
}

void hook_announce_devices(struct cli *cli, const struct graft_plan *plan, pid_t pid)
{
	/* An ordinary user may not change /dev; nobody manages its containers' scopes with device rules either. */
	if (!has_rules(plan) || graft_caps_is_unprivileged() ||
	    graft_caps_enter(&cli->caps, GRAFT_CAPS_MOUNT, NULL) < 0)
		return;
	link_devices(cli, plan);
	tell_systemd(cli, plan, pid);
}
