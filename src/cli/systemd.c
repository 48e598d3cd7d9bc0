/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd: converts the edits of a plan to the devices of a scope. apply/systemd_scope finds the
 * scope and calls systemd.
 */
#include "cli/cli.h"

#include <stdlib.h>

#include "apply/cgroup/systemd_scope.h"
#include "base/caps.h"
#include "base/cleanup.h"

void cli_tell_systemd(struct cli *cli, const struct graft_plan *plan, pid_t pid)
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
								    .access = edit->access ? edit->access : "rw" };
	}
	/*
	 * The system's systemd accepts no requests from an ordinary user, and a user's own one
	 * restricts no devices.
	 */
	if (n == 0 || graft_caps_is_unprivileged())
		return;
	if (graft_systemd_scope_allow(pid, devices, n, cli->log, &err) < 0)
		graft_warn(cli->log, "the container may lose its devices at the next 'systemctl daemon-reload': %s",
			   graft_error_text(&err, text, sizeof(text)));
}
