/* SPDX-License-Identifier: Apache-2.0 */
/* A list of files for containers of a Tegra board. */
#include "formats/csv_mounts.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	struct graft_csv_entry *entries = NULL;
	size_t n = 0, skipped;

	if (arena && size <= ((size_t)64 << 10) &&
	    graft_csv_read((const char *)data, size, arena, &entries, &n, &skipped, NULL) == 0) {
		for (size_t i = 0; i < n; i++) {
			if (!entries[i].path || entries[i].path[0] == '\0')
				__builtin_trap();
		}
	}
	(void)graft_arena_free(arena);
	return 0;
}
