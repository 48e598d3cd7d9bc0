/* SPDX-License-Identifier: Apache-2.0 */
/* A requirement expression, with facts known and unknown. */
#include "base/arena.h"
#include "fuzz.h"
#include "request/requirement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct graft_requirement_facts facts = { .cuda_max = "12.4", .driver = "550.54.14" };
	struct graft_arena *arena = graft_arena_new((size_t)64 << 10);
	const char *text = arena && size <= 4096 ? graft_arena_strndup(arena, (const char *)data, size) : NULL;
	enum graft_requirement_result result;
	unsigned int missing;

	if (text && graft_requirement_evaluate(text, &facts, &result, &missing, NULL) == 0)
		(void)graft_requirement_fail(text, NULL);
	(void)graft_arena_free(arena);
	return 0;
}
