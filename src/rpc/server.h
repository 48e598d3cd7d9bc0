/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server: gRPC on Unix sockets: methods that answer once, and methods that answer with a stream.
 *
 * Any process that can open a socket may be the peer, so everything is bounded: connections,
 * streams, memory, and the time that an unfinished request may take. A peer that breaks the
 * protocol loses its connection; the others notice nothing.
 */
#ifndef GRAFT_RPC_SERVER_H
#define GRAFT_RPC_SERVER_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rpc/loop.h"
#include "rpc/message.h"

struct graft_rpc_server;
struct graft_rpc_call;

/* One row of the table of methods. */
struct graft_rpc_method {
	const char *path;                          /* "/v1beta1.DevicePlugin/Allocate" */
	const ProtobufCMessageDescriptor *request; /* type of the request */
	/*
	 * Answers the request with graft_rpc_reply() or graft_rpc_refuse() before it returns. The
	 * request is valid until then. A method that streams sends its first message the same way,
	 * and may keep the call for graft_rpc_push() until `ended`.
	 */
	void (*serve)(void *service, struct graft_rpc_call *call, const ProtobufCMessage *request);
	void (*ended)(void *service, struct graft_rpc_call *call); /* of a stream: it is over; NULL: answers once */
};

struct graft_rpc_server_options {
	const struct graft_rpc_method *methods; /* borrowed, as is everything here */
	size_t n_methods;
	void *service; /* passed to the methods */
	/*
	 * Called for each request of a method that was answered or refused, with the time since its
	 * headers came. May be NULL.
	 */
	void (*served)(void *service, const struct graft_rpc_method *method, enum graft_rpc_status status,
		       int64_t took_us);
	size_t max_connections;   /* 0: 16 */
	uint32_t max_streams;     /* of a connection; 0: 32 */
	int64_t request_limit_ms; /* until a request, or a greeting, is complete; 0: 10 s */
	int64_t answer_limit_ms;  /* that an answer may wait for its peer; then the connection ends; 0: 30 s */
};

/* Returns a server without a socket, or NULL if memory is exhausted. */
struct graft_rpc_server *graft_rpc_server_new(struct graft_loop *loop, const struct graft_rpc_server_options *options);
/* Ends all calls and connections, removes the socket, frees the server. NULL is allowed. */
void graft_rpc_server_free(struct graft_rpc_server *server);

/*
 * Listens at `path` (rpc/unix_socket.h). Called again, it replaces the socket; connections stay.
 * Returns 0, or -1 with the error set and no socket.
 */
int graft_rpc_server_listen(struct graft_rpc_server *server, const char *path, struct graft_error *err);
/* Returns whether the socket still has its name. */
bool graft_rpc_server_is_there(const struct graft_rpc_server *server);
/* Returns whether another process listens at the socket's name now (rpc/unix_socket.h). */
bool graft_rpc_server_is_replaced(const struct graft_rpc_server *server);
/*
 * Serves a connection: a non-blocking stream socket, which is closed in any case. When there are
 * too many, the oldest one without a call ends; if there is none, the new one is refused with
 * GRAFT_TOO_BIG.
 */
int graft_rpc_server_adopt(struct graft_rpc_server *server, int take_fd, struct graft_error *err);
/* The number of connections. */
size_t graft_rpc_server_connections(const struct graft_rpc_server *server);

/*
 * Answers a call; each call is answered once. A message that cannot be sent becomes an error: then
 * it returns false, and a stream is over without `ended`.
 */
bool graft_rpc_reply(struct graft_rpc_call *call, const ProtobufCMessage *message);
/* Fails a call with a status other than GRAFT_RPC_OK and a text. */
void graft_rpc_refuse(struct graft_rpc_call *call, enum graft_rpc_status status, const char *text);
/*
 * Sends a further message on a stream. SPEC kubernetes 3: each message replaces the one before, so
 * at most one waits for a peer that reads slowly, the newest. Returns 0, or -1 with the error set;
 * the stream continues.
 */
int graft_rpc_push(struct graft_rpc_call *call, const ProtobufCMessage *message, struct graft_error *err);

#endif
