/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware: reports that the host's hardware has changed: by the kernel's events (uevents: PCI
 * devices come and go, drivers bind to and release them, the driver's modules are loaded and
 * unloaded), and by device nodes that appear and vanish. Callers find out what has changed.
 */
#ifndef GRAFT_DAEMON_HARDWARE_H
#define GRAFT_DAEMON_HARDWARE_H

#include "base/log.h"
#include "rpc/loop.h"

#define HARDWARE_SETTLE_MS 100 /* several events that come together are one change */
#define HARDWARE_POLL_MS   10000

struct hardware {
	struct graft_loop *loop;
	struct graft_loop_watch events, nodes; /* netlink; inotify */
	struct graft_loop_timer settle;
	struct graft_loop_timer poll; /* set if one of them is missing */
	void (*changed)(void *arg);
	/*
	 * Called at once with an event that may be the driver's, before `changed`; NULL: not
	 * needed. Set after hardware_begin().
	 */
	void (*noticed)(void *arg);
	void *arg;
};

/*
 * Begins to listen. `dev_folder` has the driver's device nodes. Calls `changed` from the loop after
 * each change. If it cannot listen to a source, it logs a line and calls `changed` every ten
 * seconds as well.
 */
void hardware_begin(struct hardware *hardware, struct graft_loop *loop, const char *dev_folder,
		    const struct graft_log *log, void (*changed)(void *arg), void *arg);
/*
 * Calls `changed` soon, as after a change: something may have changed before the first event.
 */
void hardware_look_soon(struct hardware *hardware);
/* Takes the pending events, for callers that must know now whether something has happened. */
void hardware_catch_up(struct hardware *hardware);
/* Ends it. Does nothing if it has not begun. */
void hardware_done(struct hardware *hardware);

#endif
