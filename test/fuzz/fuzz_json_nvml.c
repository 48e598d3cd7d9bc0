/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of the NVML child, which the driver's code can influence. */
#include "fuzz.h"
#include "host/nvml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)8 << 20);
	struct graft_nvml_snapshot snapshot = { 0 };

	if (arena && size <= ((size_t)64 << 10))
		(void)graft_record_read(&graft_nvml_snapshot_record, (const char *)data, size, arena, &snapshot, NULL);
	(void)graft_arena_free(arena);
	return 0;
}
