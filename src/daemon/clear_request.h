/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clear_request: how an administrator declares a GPU healthy: with a file named after the GPU in a
 * directory of root. The plugin, or the next one to start, removes the file.
 */
#ifndef GRAFT_DAEMON_CLEAR_REQUEST_H
#define GRAFT_DAEMON_CLEAR_REQUEST_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "rpc/loop.h"

#define CLEAR_ALL "all" /* instead of a PCI address */

struct clear_requests {
	struct graft_loop *loop;
	struct graft_loop_watch watch; /* inotify */
	struct graft_loop_timer again; /* checks a directory that cannot be watched */
	bool failed;                   /* the directory cannot be watched, which was logged */
	const char *state_folder;      /* borrowed */
	const struct graft_log *log;
	void (*clear)(void *arg, const char *name);
	void *arg;
};

/*
 * Takes requests from the directory `clear-health` in `state_folder`; creates both. Calls `clear`
 * for each, at once for those that exist already. Recreates the directory if it is removed; if it
 * cannot be watched, logs a warning and checks it every five seconds. `state_folder` is borrowed.
 */
void clear_requests_begin(struct clear_requests *requests, struct graft_loop *loop, const char *state_folder,
			  const struct graft_log *log, void (*clear)(void *arg, const char *name), void *arg);
/* Ends it. Does nothing if it has not begun. */
void clear_requests_done(struct clear_requests *requests);

/*
 * Makes a request, "0000:3b:00.0" or CLEAR_ALL, and waits for a plugin to take it. Returns 1 if one
 * does, 0 if none does within `wait_ms`, or -1 with the error set.
 */
int clear_request_make(const char *state_folder, const char *name, int64_t wait_ms, struct graft_error *err);

#endif
