/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form of the policy. */
#include "fuzz.h"
#include "plan/planner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	struct graft_policy policy = { 0 };

	if (arena && size <= ((size_t)256 << 10))
		(void)graft_record_read(&graft_policy_record, (const char *)data, size, arena, &policy, NULL);
	(void)graft_arena_free(arena);
	return 0;
}
