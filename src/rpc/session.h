/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session: one HTTP/2 connection on a descriptor: moves bytes between the socket and nghttp2, which
 * knows the protocol. Server and client build on it.
 *
 * A session never ends inside a call of its user or of nghttp2: it is marked, and `ended` is called
 * from the loop. Bounds: a peer that sends is served at most GRAFT_RPC_READ_CHUNK bytes before
 * others have their turn; at most one frame waits for a peer that does not read, and after
 * GRAFT_RPC_STALL_MS without progress the session ends.
 */
#ifndef GRAFT_RPC_SESSION_H
#define GRAFT_RPC_SESSION_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rpc/loop.h"

#define GRAFT_RPC_READ_CHUNK 65536
#define GRAFT_RPC_STALL_MS   30000

struct graft_rpc_session {
	nghttp2_session *http2;
	struct graft_loop *loop;
	struct graft_loop_watch watch; /* its descriptor is owned */
	struct graft_loop_timer stall; /* also ends the session after it has broken */
	const uint8_t *unsent;         /* nghttp2's */
	size_t n_unsent;
	bool broken;
	bool busy; /* nghttp2 is at work */
	void (*ended)(void *arg);
	void *arg;
};

/*
 * Begins a session on `take_fd`, a non-blocking stream socket, which is closed in any case. `arg`
 * goes to nghttp2's callbacks and to `ended`. Sends SETTINGS: `max_streams` for a server, 0 for a
 * client. Returns 0, or -1 with the error set and nothing to release.
 */
int graft_rpc_session_begin(struct graft_rpc_session *session, struct graft_loop *loop, int take_fd,
			    const nghttp2_session_callbacks *callbacks, uint32_t max_streams, void (*ended)(void *arg),
			    void *arg, struct graft_error *err);
/* Closes the connection and frees everything. Does nothing if the session has not begun. */
void graft_rpc_session_done(struct graft_rpc_session *session);

/* Returns a header field. Both texts are borrowed until nghttp2 has copied them. */
nghttp2_nv graft_rpc_header(const char *name, const char *value);

/* Sends what nghttp2 has to send, as far as the socket takes it. */
void graft_rpc_session_flush(struct graft_rpc_session *session);
/* Marks the session as broken: `ended` is called in the loop's next turn. */
void graft_rpc_session_break(struct graft_rpc_session *session);

#endif
