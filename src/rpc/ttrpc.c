/* SPDX-License-Identifier: Apache-2.0 */
/* ttrpc: bytes to messages and back. */
#include "rpc/ttrpc.h"

#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "rpc/message.h"
#include "rpc/mux.h"
#include "ttrpc.pb-c.h"

/* --- reading --- */

static uint32_t length_of(const struct graft_ttrpc_collector *collector)
{
	return graft_mux_number(collector->header);
}

static size_t take_ttrpc_data(struct graft_ttrpc_collector *collector, const uint8_t *bytes, size_t n)
{
	size_t wanted = length_of(collector) - collector->data.length;

	wanted = n < wanted ? n : wanted;
	graft_buffer_add(&collector->data, bytes, wanted);
	return wanted;
}

/* Passes on a complete message. */
static int end_message(struct graft_ttrpc_collector *collector,
		       int (*take)(void *arg, const struct graft_ttrpc_message *message, struct graft_error *err),
		       void *arg, struct graft_error *err)
{
	const struct graft_ttrpc_message message = { .stream = graft_mux_number(collector->header + 4),
						     .type = collector->header[8],
						     .data = (const uint8_t *)graft_buffer_text(&collector->data),
						     .n = collector->data.length };
	int rc = take(arg, &message, err);

	/* Most messages are small; the memory of a large one is not kept. */
	graft_buffer_done(&collector->data);
	collector->n_header = 0;
	return rc;
}

int graft_ttrpc_collect(struct graft_ttrpc_collector *collector, const uint8_t *bytes, size_t n,
			int (*take)(void *arg, const struct graft_ttrpc_message *message, struct graft_error *err),
			void *arg, struct graft_error *err)
{
	while (n > 0) {
		size_t used;

		if (collector->n_header < GRAFT_TTRPC_HEADER) {
			used = graft_mux_fill(collector->header, GRAFT_TTRPC_HEADER, &collector->n_header, bytes, n);
			if (collector->n_header == GRAFT_TTRPC_HEADER && length_of(collector) > GRAFT_TTRPC_MAX)
				return graft_fail(err, GRAFT_TOO_BIG, 0, "a message of %u bytes is too large",
						  length_of(collector));
		} else {
			used = take_ttrpc_data(collector, bytes, n);
		}
		if (graft_buffer_failed(&collector->data))
			return graft_fail_memory(err);
		bytes += used;
		n -= used;
		if (collector->n_header == GRAFT_TTRPC_HEADER && collector->data.length == length_of(collector) &&
		    end_message(collector, take, arg, err) < 0)
			return -1;
	}
	return 0;
}

void graft_ttrpc_collector_done(struct graft_ttrpc_collector *collector)
{
	graft_buffer_done(&collector->data);
	*collector = (struct graft_ttrpc_collector){ .n_header = 0 };
}

/* --- writing --- */

static bool is_value_utf8(const ProtobufCFieldDescriptor *field, const void *value)
{
	const ProtobufCMessage *message;
	const char *text;

	if (field->type == PROTOBUF_C_TYPE_STRING) {
		memcpy(&text, value, sizeof(text));
		return !text || graft_is_utf8(text);
	}
	memcpy(&message, value, sizeof(message));
	return !message || graft_ttrpc_is_utf8(message);
}

bool graft_ttrpc_is_utf8(const ProtobufCMessage *message)
{
	const char *base = (const char *)message;
	bool is = true;

	for (unsigned int i = 0; i < message->descriptor->n_fields && is; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		const char *value = base + field->offset;
		size_t n = 1;

		if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			memcpy(&n, base + field->quantifier_offset, sizeof(n));
			memcpy(&value, base + field->offset, sizeof(value));
		}
		for (size_t k = 0; k < n && is; k++)
			is = is_value_utf8(field, value + k * sizeof(void *));
	}
	return is;
}

static int write_ttrpc(struct graft_buffer *out, uint32_t stream, enum graft_ttrpc_type type,
		       const ProtobufCMessage *message, struct graft_error *err)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	uint8_t header[GRAFT_TTRPC_HEADER] = { 0 };
	char *data;

	if (n > GRAFT_TTRPC_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "a message of %zu bytes is larger than 4 MiB", n);
	graft_mux_put_number(header, (uint32_t)n);
	graft_mux_put_number(header + 4, stream);
	header[8] = (uint8_t)type;
	data = graft_buffer_extend(out, sizeof(header) + n);
	if (!data)
		return graft_fail_memory(err);
	memcpy(data, header, sizeof(header));
	(void)protobuf_c_message_pack(message, (uint8_t *)data + sizeof(header));
	return 0;
}

/* The message inside, as bytes that the caller frees. */
static int pack(const ProtobufCMessage *message, ProtobufCBinaryData *ret_bytes, struct graft_error *err)
{
	size_t n = protobuf_c_message_get_packed_size(message);

	*ret_bytes = (ProtobufCBinaryData){ .len = 0 };
	if (n > GRAFT_TTRPC_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "a message of %zu bytes is larger than 4 MiB", n);
	ret_bytes->data = malloc(n + 1);
	if (!ret_bytes->data)
		return graft_fail_memory(err);
	ret_bytes->len = protobuf_c_message_pack(message, ret_bytes->data);
	return 0;
}

int graft_ttrpc_write_request(struct graft_buffer *out, uint32_t stream, const char *service, const char *method,
			      const ProtobufCMessage *payload, struct graft_error *err)
{
	Graft__Ttrpc__Request request;
	int rc;

	graft__ttrpc__request__init(&request);
	request.service = graft_rpc_read_only(service);
	request.method = graft_rpc_read_only(method);
	if (pack(payload, &request.payload, err) < 0)
		return -1;
	rc = write_ttrpc(out, stream, GRAFT_TTRPC_REQUEST, &request.base, err);
	free(request.payload.data);
	return rc;
}

int graft_ttrpc_write_response(struct graft_buffer *out, uint32_t stream, const ProtobufCMessage *payload,
			       int32_t status, const char *text, struct graft_error *err)
{
	Graft__Ttrpc__Response response;
	Graft__Ttrpc__Status refusal;
	int rc;

	graft__ttrpc__response__init(&response);
	graft__ttrpc__status__init(&refusal);
	if (payload) {
		if (pack(payload, &response.payload, err) < 0)
			return -1;
	} else {
		refusal.code = status;
		refusal.message = graft_rpc_read_only(text);
		response.status = &refusal;
	}
	rc = write_ttrpc(out, stream, GRAFT_TTRPC_RESPONSE, &response.base, err);
	free(response.payload.data);
	return rc;
}
