/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message: gRPC's framing of messages and escaping of texts. Knows nothing of streams and sockets.
 */
#include "rpc/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "rpc/mux.h"

/* Bytes of the prefix: compressed or not, and the length, big-endian. */
static size_t announced_length(const struct graft_rpc_collector *c)
{
	return graft_mux_number(c->prefix + 1);
}

static bool is_prefix_complete(const struct graft_rpc_collector *c)
{
	return c->n_prefix == sizeof(c->prefix);
}

enum graft_rpc_status graft_rpc_collect(struct graft_rpc_collector *c, const uint8_t *bytes, size_t n,
					const char **ret_text)
{
	size_t take = graft_mux_fill(c->prefix, sizeof(c->prefix), &c->n_prefix, bytes, n);

	bytes += take;
	n -= take;
	if (!is_prefix_complete(c))
		return GRAFT_RPC_OK;
	if (c->prefix[0] != 0) {
		*ret_text = "compressed messages are not supported";
		return GRAFT_RPC_UNIMPLEMENTED;
	}
	if (announced_length(c) > GRAFT_RPC_MAX_MESSAGE) {
		(void)snprintf(c->why, sizeof(c->why), "a message of %zu bytes is larger than 4 MiB",
			       announced_length(c));
		*ret_text = c->why;
		return GRAFT_RPC_RESOURCE_EXHAUSTED;
	}
	if (n > announced_length(c) - c->message.length) {
		*ret_text = "more than one message in a call that has one";
		return GRAFT_RPC_INTERNAL;
	}
	graft_buffer_add(&c->message, bytes, n);
	if (graft_buffer_failed(&c->message)) {
		*ret_text = "out of memory";
		return GRAFT_RPC_RESOURCE_EXHAUSTED;
	}
	return GRAFT_RPC_OK;
}

bool graft_rpc_is_collected(const struct graft_rpc_collector *c)
{
	return is_prefix_complete(c) && c->message.length == announced_length(c);
}

void graft_rpc_collector_done(struct graft_rpc_collector *c)
{
	graft_buffer_done(&c->message);
	*c = (struct graft_rpc_collector){ .n_prefix = 0 };
}

int graft_rpc_encode(const ProtobufCMessage *message, uint8_t **ret_bytes, size_t *ret_n, struct graft_error *err)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes;

	if (n > GRAFT_RPC_MAX_MESSAGE)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "a message of %zu bytes is larger than 4 MiB", n);
	bytes = malloc(n + 5);
	if (!bytes)
		return graft_fail_memory(err);
	bytes[0] = 0;
	graft_mux_put_number(bytes + 1, (uint32_t)n);
	(void)protobuf_c_message_pack(message, bytes + 5);
	*ret_bytes = bytes;
	*ret_n = n + 5;
	return 0;
}

static void *take_from_arena(void *arena, size_t size)
{
	return graft_arena_alloc(arena, size);
}

static void leave_in_arena(void *arena, void *bytes)
{
	(void)arena;
	(void)bytes;
}

ProtobufCMessage *graft_rpc_decode(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n,
				   struct graft_arena *arena)
{
	ProtobufCAllocator allocator = { .alloc = take_from_arena, .free = leave_in_arena, .allocator_data = arena };

	return protobuf_c_message_unpack(type, &allocator, n, bytes);
}

void *graft_rpc_new(const ProtobufCMessageDescriptor *type, struct graft_arena *arena)
{
	void *message = graft_arena_alloc(arena, type->sizeof_message);

	if (message)
		protobuf_c_message_init(type, message);
	return message;
}

void *graft_rpc_list(const ProtobufCMessageDescriptor *type, size_t n, struct graft_arena *arena, void *ret_pointers)
{
	size_t size = type->sizeof_message;
	char *messages = graft_arena_alloc(arena, n * size);
	void **pointers = graft_arena_alloc(arena, n * sizeof(*pointers));

	if (!messages || !pointers)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		pointers[i] = messages + i * size;
		protobuf_c_message_init(type, pointers[i]);
	}
	memcpy(ret_pointers, &pointers, sizeof(pointers));
	return messages;
}

void graft_rpc_escape(struct graft_buffer *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text >= 0x20 && *text < 0x7f && *text != '%')
			graft_buffer_char(out, *text);
		else
			graft_buffer_printf(out, "%%%02X", (unsigned char)*text);
	}
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void graft_rpc_unescape(struct graft_buffer *out, const char *value, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = value[i];

		if (c == '%' && n - i > 2 && hex_value(value[i + 1]) >= 0 && hex_value(value[i + 2]) >= 0) {
			c = (char)(hex_value(value[i + 1]) << 4 | hex_value(value[i + 2]));
			i += 2;
		}
		if (c == '\0')
			return;
		graft_buffer_char(out, c);
	}
}

void *graft_rpc_read_only(const void *bytes)
{
	void *same;

	memcpy(&same, &bytes, sizeof(same));
	return same;
}
