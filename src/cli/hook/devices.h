/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices: makes the container's devices known on the host by the links of /dev/char, without which no systemd before version 240 knows them at a later
 * `systemctl daemon-reload` or `docker update`. Best effort: the container works without, until then.
 */
#ifndef GRAFT_CLI_HOOK_DEVICES_H
#define GRAFT_CLI_HOOK_DEVICES_H

#include <sys/types.h>

#include "cli/cli.h"
#include "plan/plan.h"

/* For cli.planned: before the container is touched. What could not be done is in the log. */
void hook_announce_devices(struct cli *cli, const struct graft_plan *plan, pid_t pid);

#endif
