/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message: the messages of gRPC as bytes: a protobuf message after five bytes with its length,
 * statuses, and their texts as in HTTP headers (SPEC kubernetes 1). Does no I/O.
 */
#ifndef GRAFT_RPC_MESSAGE_H
#define GRAFT_RPC_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

/* The largest message that is accepted, as in gRPC's implementation for Go. */
#define GRAFT_RPC_MAX_MESSAGE ((size_t)4 << 20)

/* Statuses of gRPC. Those that this project does not use are left out. */
enum graft_rpc_status {
	GRAFT_RPC_OK = 0,
	GRAFT_RPC_CANCELLED = 1,
	GRAFT_RPC_UNKNOWN = 2,
	GRAFT_RPC_INVALID_ARGUMENT = 3,
	GRAFT_RPC_DEADLINE_EXCEEDED = 4,
	GRAFT_RPC_RESOURCE_EXHAUSTED = 8,
	GRAFT_RPC_UNIMPLEMENTED = 12,
	GRAFT_RPC_INTERNAL = 13,
	GRAFT_RPC_UNAVAILABLE = 14,
};

/* Collects one message from the DATA frames of a stream. Starts zeroed. */
struct graft_rpc_collector {
	uint8_t prefix[5];
	size_t n_prefix;
	struct graft_buffer message;
	char why[64]; /* it is too large */
};

/*
 * Takes the next n bytes of a stream. Returns GRAFT_RPC_OK, or the status with which the call fails
 * and its text, which lives as long as the collector, in *ret_text: a compressed message, one that
 * is too large, a second one.
 */
enum graft_rpc_status graft_rpc_collect(struct graft_rpc_collector *collector, const uint8_t *bytes, size_t n,
					const char **ret_text);
/* Returns whether the stream held exactly one message. */
bool graft_rpc_is_collected(const struct graft_rpc_collector *collector);
/* Frees the bytes. */
void graft_rpc_collector_done(struct graft_rpc_collector *collector);

/*
 * Encodes a message after its five bytes. *ret_bytes belongs to the caller, who frees it. Returns
 * 0, or -1 with GRAFT_NO_MEMORY, or GRAFT_TOO_BIG for more than GRAFT_RPC_MAX_MESSAGE.
 */
int graft_rpc_encode(const ProtobufCMessage *message, uint8_t **ret_bytes, size_t *ret_n, struct graft_error *err);

/*
 * Decodes n bytes as a message of a type. It lives in `arena`, which bounds what a hostile message
 * can cost, and must not be freed. Returns NULL if it is malformed or needs more memory than that.
 */
ProtobufCMessage *graft_rpc_decode(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n,
				   struct graft_arena *arena);

/* Makes a message of a type in the arena. NULL: out of memory. */
void *graft_rpc_new(const ProtobufCMessageDescriptor *type, struct graft_arena *arena);
/*
 * Makes n messages of a type, one behind the other, and in *ret_pointers the list of pointers to
 * them that protobuf-c needs. NULL: out of memory.
 */
void *graft_rpc_list(const ProtobufCMessageDescriptor *type, size_t n, struct graft_arena *arena, void *ret_pointers);

/* Appends the value of grpc-message: everything but printable ASCII, and '%', as %XX. */
void graft_rpc_escape(struct graft_buffer *out, const char *text);
/*
 * Appends the text of a grpc-message of n bytes. An invalid %XX is kept unchanged; NUL ends the
 * text.
 */
void graft_rpc_unescape(struct graft_buffer *out, const char *value, size_t n);

/*
 * Returns the same pointer without const, which protobuf-c and nghttp2 require even for bytes that
 * they only read.
 */
void *graft_rpc_read_only(const void *bytes);

#endif
