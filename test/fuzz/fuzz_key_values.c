/* SPDX-License-Identifier: Apache-2.0 */
/* "Key: value" lines of the driver's procfs. */
#include "formats/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	struct graft_key_value *items = NULL;
	size_t n = 0;

	if (arena && size <= ((size_t)64 << 10) &&
	    graft_procfs_key_values((const char *)data, size, arena, &items, &n) == 0)
		(void)graft_key_value_find(items, n, "Device Minor");
	(void)graft_arena_free(arena);
	return 0;
}
