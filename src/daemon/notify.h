/* SPDX-License-Identifier: Apache-2.0 */
/* notify: reports a daemon's state to the service manager: sd_notify(3), without its library. */
#ifndef GRAFT_DAEMON_NOTIFY_H
#define GRAFT_DAEMON_NOTIFY_H

/*
 * Sends `state`, lines like "READY=1", to `socket`, the value of NOTIFY_SOCKET. NULL or empty:
 * nothing is sent. Failures are ignored: the manager has its own timeouts.
 */
void notify_send(const char *socket_name, const char *state);
/* The same with RELOADING=1 and the time that systemd requires with it. */
void notify_reloading(const char *socket_name);

#endif
