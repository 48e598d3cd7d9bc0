/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that decide who gets which GPUs, from a file: an accepted one is written as it was
 * read, and gives its claim an answer.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "lease/lease_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	struct graft_buffer out = { .max = 0 };
	struct graft_lease_state state, again;
	struct graft_claim claim;
	struct graft_lease lease;

	if (arena && graft_lease_state_parse((const char *)data, size, arena, &state, NULL) == 0) {
		graft_record_write(&graft_lease_state_record, &state, &out);
		if (graft_lease_state_parse(out.bytes, out.length, arena, &again, NULL) < 0 ||
		    !graft_record_equal(&graft_lease_state_record, &state, &again, NULL, 0))
			abort();
		if (graft_claim_parse(state.claim, arena, &claim, NULL) == 0)
			(void)graft_lease_state_choose(&state, &claim, arena, &lease, NULL);
	}
	graft_buffer_done(&out);
	(void)graft_arena_free(arena);
	return 0;
}
