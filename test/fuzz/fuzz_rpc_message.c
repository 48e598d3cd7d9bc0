/* SPDX-License-Identifier: Apache-2.0 */
/* Each message, chosen by the first byte, in frames of gRPC: what is read, once it is written, is read as the same again. */
#include <device_plugin.pb-c.h>
#include <plugin_registration.pb-c.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "rpc/message.h"

static const ProtobufCMessageDescriptor *const types[] = {
	&v1beta1__allocate_request__descriptor,
	&v1beta1__preferred_allocation_request__descriptor,
	&v1beta1__pre_start_container_request__descriptor,
	&v1beta1__empty__descriptor,
	&pluginregistration__info_request__descriptor,
	&pluginregistration__registration_status__descriptor,
	&v1beta1__register_request__descriptor,
	&v1beta1__list_and_watch_response__descriptor,
	&v1beta1__allocate_response__descriptor,
	&v1beta1__preferred_allocation_response__descriptor,
	&v1beta1__device_plugin_options__descriptor,
	&pluginregistration__plugin_info__descriptor,
	&pluginregistration__registration_status_response__descriptor,
};

/* Reads n bytes of a stream, in parts of `step`, and writes the message; false if it is none. */
static bool read_and_write(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t n, size_t step,
			   uint8_t **ret_bytes, size_t *ret_n)
{
	struct graft_arena *arena = graft_arena_new((size_t)8 << 20);
	struct graft_rpc_collector collector = { 0 };
	const ProtobufCMessage *message = NULL;
	const char *text = "";
	bool well = arena != NULL, written;

	for (size_t at = 0; at < n && well; at += step)
		well = graft_rpc_collect(&collector, bytes + at, step < n - at ? step : n - at, &text) == GRAFT_RPC_OK;
	if (well && graft_rpc_is_collected(&collector))
		message = graft_rpc_decode(type, graft_buffer_text(&collector.message), collector.message.length,
					   arena);
	graft_rpc_collector_done(&collector);
	written = message && graft_rpc_encode(message, ret_bytes, ret_n, NULL) == 0;
	(void)graft_arena_free(arena);
	return written;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const ProtobufCMessageDescriptor *type = types[size > 0 ? data[0] % GRAFT_COUNT(types) : 0];
	uint8_t *first = NULL, *second = NULL;
	size_t n_first = 0, n_second = 0;

	if (size > 1 && size < 65536 && read_and_write(type, data + 1, size - 1, 1 + data[0] / 32u, &first, &n_first)) {
		if (!read_and_write(type, first, n_first, n_first, &second, &n_second) || n_first != n_second ||
		    memcmp(first, second, n_first) != 0)
			__builtin_trap();
	}
	free(first);
	free(second);
	return 0;
}
