/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices: makes the container's devices known on the host, so that a later `systemctl daemon-reload` or `docker update` does not take them away: the
 * links of /dev/char, and the rules of the container's systemd scope. All of it is best effort: the container works without, until then.
 */
#ifndef GRAFT_CLI_HOOK_DEVICES_H
#define GRAFT_CLI_HOOK_DEVICES_H

#include <sys/types.h>

#include "cli/cli.h"
#include "plan/plan.h"

/* For cli.planned: before the container is touched. What could not be done is in the log. */
void hook_announce_devices(struct cli *cli, const struct graft_plan *plan, pid_t pid);

#endif
