/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_unit: restarts a unit of the node's systemd over its private socket by one D-Bus call,
 * without a library or a program of the node.
 */
#ifndef GRAFT_CLI_INSTALLER_SYSTEMD_UNIT_H
#define GRAFT_CLI_INSTALLER_SYSTEMD_UNIT_H

#include "base/error.h"

/*
 * Asks the systemd that listens on `socket_path` (/run/systemd/private, as this process sees it) to
 * restart `unit`. On return systemd has accepted the job, which may still run. Returns 0, or -1:
 * GRAFT_TIMEOUT, or GRAFT_PROGRAM with the name of systemd's error.
 */
int installer_systemd_restart(const char *socket_path, const char *unit, int timeout_ms, struct graft_error *err);
/* The same over a connection, which is borrowed. */
int installer_systemd_talk(int fd, const char *unit, int timeout_ms, struct graft_error *err);

#endif
