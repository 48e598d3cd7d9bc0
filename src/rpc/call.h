/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: the server's side of one connection: its streams, each of which is a call of a method. For
 * server.c alone; rpc/server.h has what methods need.
 *
 * A call is freed when nghttp2 reports that its stream has closed, never before.
 */
#ifndef GRAFT_RPC_CALL_H
#define GRAFT_RPC_CALL_H

#include "rpc/server.h"
#include "rpc/session.h"

struct graft_rpc_connection {
	struct graft_rpc_session session;
	const struct graft_rpc_server_options *options;
	struct graft_rpc_call *calls;     /* open streams */
	struct graft_loop_timer greeting; /* until the peer's SETTINGS */
	size_t collected;                 /* bytes of messages that its streams hold */
	void (*ended)(void *owner, struct graft_rpc_connection *connection);
	void *owner;
	struct graft_rpc_connection *next; /* the owner's */
};

/*
 * Serves `take_fd`, which is closed in any case. `ended` is called from the loop when the
 * connection is over, and frees it. Returns NULL with the error set if memory is exhausted.
 */
struct graft_rpc_connection *
graft_rpc_connection_new(struct graft_loop *loop, const struct graft_rpc_server_options *options, int take_fd,
			 void (*ended)(void *owner, struct graft_rpc_connection *connection), void *owner,
			 struct graft_error *err);
/* Ends all calls and closes the connection. */
void graft_rpc_connection_free(struct graft_rpc_connection *connection);

#endif
