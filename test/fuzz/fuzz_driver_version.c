/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/driver/nvidia/version. */
#include "formats/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);

	if (arena && size <= ((size_t)64 << 10))
		(void)graft_procfs_driver_version((const char *)data, size, arena);
	(void)graft_arena_free(arena);
	return 0;
}
