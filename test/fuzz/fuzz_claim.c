/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a claim: what is understood is written so that it is read back the same. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "request/claim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	const char *text = arena ? graft_arena_strndup(arena, (const char *)data, size) : NULL;
	struct graft_buffer first = { .max = 0 }, second = { .max = 0 };
	struct graft_claim claim;

	if (text && graft_claim_parse(text, arena, &claim, NULL) == 0) {
		graft_claim_write(&claim, &first);
		if (graft_claim_parse(first.bytes, arena, &claim, NULL) == 0)
			graft_claim_write(&claim, &second);
		if (strcmp(graft_buffer_text(&first), graft_buffer_text(&second)) != 0)
			abort();
	}
	graft_buffer_done(&first);
	graft_buffer_done(&second);
	(void)graft_arena_free(arena);
	return 0;
}
