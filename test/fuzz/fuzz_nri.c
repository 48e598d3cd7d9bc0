/* SPDX-License-Identifier: Apache-2.0 */
/* Each message of NRI and of PodResources, chosen by the first byte: it is read, written, and read again. Fields that are not known are not compared: they may be malformed. */
#include <nri.pb-c.h>
#include <pod_resources.pb-c.h>
#include <stdlib.h>
#include <ttrpc.pb-c.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "rpc/message.h"

#define NRI(name) &nri__pkg__api__v1alpha1__##name##__descriptor
static const ProtobufCMessageDescriptor *const types[] = {
	NRI(create_container_request),
	NRI(configure_request),
	NRI(synchronize_request),
	NRI(create_container_response),
	NRI(configure_response),
	NRI(synchronize_response),
	NRI(register_plugin_request),
	NRI(empty),
	&v1__list_pod_resources_response__descriptor,
	&graft__ttrpc__request__descriptor,
	&graft__ttrpc__response__descriptor,
};

/* Returns how many bytes the message has once it is written to `out`; 0 if it is none. */
static size_t rewrite(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t n, uint8_t **out)
{
	struct graft_arena *arena = graft_arena_new((size_t)32 << 20);
	const ProtobufCMessage *message = arena ? graft_rpc_decode(type, bytes, n, arena) : NULL;

	*out = message ? malloc(protobuf_c_message_get_packed_size(message) + 1) : NULL;
	n = *out ? protobuf_c_message_pack(message, *out) : 0;
	(void)graft_arena_free(arena);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const ProtobufCMessageDescriptor *type = types[size > 0 ? data[0] % GRAFT_COUNT(types) : 0];
	uint8_t *first = NULL, *second = NULL;
	size_t n = size > 0 && size < 65536 ? rewrite(type, data + 1, size - 1, &first) : 0;

	if (first)
		(void)rewrite(type, first, n, &second);
	free(first);
	free(second);
	return 0;
}
