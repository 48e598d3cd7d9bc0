/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd: a plan's device rules, for the systemd that manages the container's scope. All of it is best effort: the container has its devices
 * without, until systemd puts its own rules in force again.
 */
#ifndef GRAFT_CLI_SYSTEMD_H
#define GRAFT_CLI_SYSTEMD_H

#include <sys/types.h>

#include "cli/cli.h"
#include "plan/plan.h"

/*
 * Tells systemd what the process' scope may use from now on. Before the container is touched, and before the rules are added to its cgroup,
 * from where systemd would take them away again. What could not be done is in the log.
 */
void cli_tell_systemd(struct cli *cli, const struct graft_plan *plan, pid_t pid);

#endif
