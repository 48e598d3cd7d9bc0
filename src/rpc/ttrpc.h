/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ttrpc: the messages of one ttrpc connection as bytes: a header of ten bytes, and a request or a
 * response (SPEC installer-and-nri 11). Does no I/O. Streaming calls are not supported: NRI has
 * none.
 */
#ifndef GRAFT_RPC_TTRPC_H
#define GRAFT_RPC_TTRPC_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define GRAFT_TTRPC_HEADER 10
/* The largest message, as in the implementation that engines use. */
#define GRAFT_TTRPC_MAX ((size_t)4 << 20)

enum graft_ttrpc_type { GRAFT_TTRPC_REQUEST = 1, GRAFT_TTRPC_RESPONSE = 2, GRAFT_TTRPC_DATA = 3 };

/* Collects the messages of a connection. Starts zeroed. */
struct graft_ttrpc_collector {
	uint8_t header[GRAFT_TTRPC_HEADER];
	size_t n_header;
	struct graft_buffer data;
};

/* A message as received: its data belong to the collector, until the next one. */
struct graft_ttrpc_message {
	uint32_t stream;
	uint8_t type; /* of enum graft_ttrpc_type, or any other */
	const uint8_t *data;
	size_t n;
};

/*
 * Takes the next n bytes of a connection, and calls `take` with each message that is complete,
 * which returns 0, or -1 with the error set. Returns 0, or -1 with GRAFT_TOO_BIG or
 * GRAFT_NO_MEMORY: nothing after that can be read.
 */
int graft_ttrpc_collect(struct graft_ttrpc_collector *collector, const uint8_t *bytes, size_t n,
			int (*take)(void *arg, const struct graft_ttrpc_message *message, struct graft_error *err),
			void *arg, struct graft_error *err);
/* Frees the bytes. */
void graft_ttrpc_collector_done(struct graft_ttrpc_collector *collector);

/*
 * Returns whether all texts of a message are UTF-8. Peers written in Go fail to decode a message
 * with others.
 */
bool graft_ttrpc_is_utf8(const ProtobufCMessage *message);

/*
 * Appends a message with its header. Returns 0, or -1 with GRAFT_TOO_BIG or GRAFT_NO_MEMORY, and
 * nothing appended that a peer could read.
 */
int graft_ttrpc_write_request(struct graft_buffer *out, uint32_t stream, const char *service, const char *method,
			      const ProtobufCMessage *payload, struct graft_error *err);
/* `payload` NULL: a refusal with the status of gRPC, and a text. */
int graft_ttrpc_write_response(struct graft_buffer *out, uint32_t stream, const ProtobufCMessage *payload,
			       int32_t status, const char *text, struct graft_error *err);

#endif
