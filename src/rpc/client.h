/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client: one call of a method that answers once, over a connection of its own, in the loop that
 * serves others meanwhile: the kubelet dials the plugin before it answers the plugin's call.
 */
#ifndef GRAFT_RPC_CLIENT_H
#define GRAFT_RPC_CLIENT_H

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "rpc/loop.h"
#include "rpc/message.h"

struct graft_rpc_client;

struct graft_rpc_request {
	const char *socket;                       /* path */
	const char *method;                       /* "/v1beta1.Registration/Register" */
	const ProtobufCMessage *message;          /* read before graft_rpc_call() returns */
	const ProtobufCMessageDescriptor *answer; /* its type; it outlives the call */
	int64_t deadline_ms;
	/*
	 * Called once, from the loop, unless the call is cancelled. `text` is the reason of a
	 * failure, and "" with GRAFT_RPC_OK. `answer` is NULL after a failure, and only then. Both
	 * are valid until this function returns. The client has been freed when it is called.
	 */
	void (*done)(void *arg, enum graft_rpc_status status, const char *text, const ProtobufCMessage *answer);
	void *arg;
};

/*
 * Begins a call. Returns the client, for graft_rpc_cancel(), or NULL with the error set: GRAFT_IO,
 * GRAFT_NOT_FOUND or GRAFT_PERMISSION if it cannot connect, GRAFT_NO_MEMORY, GRAFT_TOO_BIG.
 */
struct graft_rpc_client *graft_rpc_call(struct graft_loop *loop, const struct graft_rpc_request *request,
					struct graft_error *err);
/* Cancels a call that has not ended. NULL is allowed. */
void graft_rpc_cancel(struct graft_rpc_client *client);

#endif
