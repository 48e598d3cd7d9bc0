/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of ttrpc: its messages, decoded as requests and as responses. */
#include <ttrpc.pb-c.h>

#include "fuzz.h"
#include "rpc/message.h"
#include "rpc/ttrpc.h"

static int decode_both(void *arg, const struct graft_ttrpc_message *message, struct graft_error *err)
{
	struct graft_arena *arena = graft_arena_new((size_t)8 << 20);

	(void)arg;
	(void)err;
	(void)graft_rpc_decode(&graft__ttrpc__request__descriptor, message->data, message->n, arena);
	(void)graft_rpc_decode(&graft__ttrpc__response__descriptor, message->data, message->n, arena);
	(void)graft_arena_free(arena);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_ttrpc_collector collector = { .n_header = 0 };

	(void)graft_ttrpc_collect(&collector, data, size / 2, decode_both, NULL, NULL);
	(void)graft_ttrpc_collect(&collector, data + size / 2, size - size / 2, decode_both, NULL, NULL);
	graft_ttrpc_collector_done(&collector);
	return 0;
}
