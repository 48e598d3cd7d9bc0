/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ttrpc_link: one socket with two ttrpc connections in it, one in each direction, as NRI has it
 * (SPEC installer-and-nri 12): on stream 1 the peer calls methods, on stream 2 this side does.
 *
 * It never stops reading, even if data waits to be sent, or both ends could wait for each other.
 * The waiting data is bounded instead. A peer that breaks the protocol loses the link. `ended` is
 * called from the loop, never inside a call of the link's user.
 */
#ifndef GRAFT_RPC_TTRPC_LINK_H
#define GRAFT_RPC_TTRPC_LINK_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "rpc/loop.h"
#include "rpc/message.h"
#include "rpc/mux.h"
#include "rpc/ttrpc.h"

#define GRAFT_LINK_SERVED 1 /* streams of the multiplexer */
#define GRAFT_LINK_CALLED 2
/* A peer that lets more than this accumulate no longer reads. */
#define GRAFT_LINK_UNSENT_MAX ((size_t)32 << 20)

struct graft_ttrpc_link;

/* A call of the peer. */
struct graft_ttrpc_call {
	uint32_t stream;
	const ProtobufCMessage *message; /* in the arena */
	/*
	 * Of the message. A method that answers later may take it, by setting this to NULL; else it
	 * is freed when the method returns.
	 */
	struct graft_arena *arena;
};

struct graft_ttrpc_method {
	const char *name;                          /* "CreateContainer" */
	const ProtobufCMessageDescriptor *request; /* NULL: any; the message is not decoded, and NULL */
	/*
	 * Answers once, now or later, by graft_ttrpc_link_reply() or graft_ttrpc_link_refuse().
	 * NULL: the answer is the link's `empty`.
	 */
	void (*serve)(void *service, struct graft_ttrpc_call *call);
};

struct graft_ttrpc_link_options {
	const char *service; /* "nri.pkg.api.v1alpha1.Plugin"; borrowed, as is everything here */
	const struct graft_ttrpc_method *methods;
	size_t n_methods;
	const ProtobufCMessage *empty; /* the answer of methods that are not in the table */
	void *arg;                     /* passed to the methods and to `ended` */
	/* The link has ended, and can be released. `why` is the reason, for people. */
	void (*ended)(void *arg, const struct graft_error *why);
};

struct graft_ttrpc_link {
	struct graft_loop *loop;
	const struct graft_ttrpc_link_options *options;
	struct graft_loop_watch watch; /* its descriptor is owned */
	struct graft_loop_timer end;   /* due at once when the link has broken */
	struct graft_mux_reader mux;
	struct graft_ttrpc_collector served, called;
	struct graft_buffer out;
	size_t sent; /* of `out` */
	uint32_t next_stream;
	/* The only call of this side in progress. */
	uint32_t calling; /* its stream; 0: none */
	void (*done)(void *arg, enum graft_rpc_status status, const char *text);
	bool begun, broken;
	struct graft_error why;
};

/*
 * Begins on `take_fd`, a non-blocking stream socket, which is closed in any case. `link` does not
 * move afterwards. Returns 0, or -1 with GRAFT_NO_MEMORY and nothing to release.
 */
int graft_ttrpc_link_begin(struct graft_ttrpc_link *link, struct graft_loop *loop, int take_fd,
			   const struct graft_ttrpc_link_options *options, struct graft_error *err);
/* Closes it and frees everything. Does nothing if it has not begun. `ended` is not called. */
void graft_ttrpc_link_done(struct graft_ttrpc_link *link);

/*
 * Calls a method of the peer; no other call may be in progress. `done` gets GRAFT_RPC_OK, or the
 * peer's status and its text; the rest of the peer's answer is ignored. It is not called if the
 * link ends before. Returns 0, or -1 with the error set.
 */
int graft_ttrpc_link_call(struct graft_ttrpc_link *link, const char *service, const char *method,
			  const ProtobufCMessage *message,
			  void (*done)(void *arg, enum graft_rpc_status status, const char *text),
			  struct graft_error *err);

/* Answer a call of that stream; a link that cannot take the answer breaks. */
void graft_ttrpc_link_reply(struct graft_ttrpc_link *link, uint32_t stream, const ProtobufCMessage *message);
void graft_ttrpc_link_refuse(struct graft_ttrpc_link *link, uint32_t stream, enum graft_rpc_status status,
			     const char *text);

#endif
