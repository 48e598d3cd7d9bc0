/* SPDX-License-Identifier: Apache-2.0 */
/* listener: accepts the connections of a listening socket, one per turn of the loop. */
#ifndef GRAFT_RPC_LISTENER_H
#define GRAFT_RPC_LISTENER_H

#include "base/error.h"
#include "rpc/loop.h"

/* How long a connection waits in the socket's queue after a lack of descriptors or memory. */
#define GRAFT_LISTENER_AGAIN_MS 1000

struct graft_listener {
	struct graft_loop *loop;
	struct graft_loop_watch watch;
	struct graft_loop_timer again;
	int64_t gap_ms; /* between two connections; others wait in the queue */
	void (*accepted)(void *arg, int take_fd);
	void *arg;
};

/*
 * Accepts at `fd`, a non-blocking listening socket, which is borrowed. `accepted` takes each
 * connection, a non-blocking descriptor, and closes it. `listener` does not move afterwards.
 * Returns 0, or -1 with GRAFT_NO_MEMORY and nothing to release.
 */
int graft_listener_begin(struct graft_listener *listener, struct graft_loop *loop, int fd,
			 void (*accepted)(void *arg, int take_fd), void *arg, struct graft_error *err);
/* Stops accepting. Does nothing if the listener, which must have been zeroed, has not begun. */
void graft_listener_end(struct graft_listener *listener);

#endif
