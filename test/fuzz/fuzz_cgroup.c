/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cgroup. */
#include "formats/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	struct graft_cgroup_entry *items = NULL;
	size_t n = 0;

	if (arena && size <= ((size_t)64 << 10))
		(void)graft_procfs_cgroup((const char *)data, size, arena, &items, &n, NULL);
	(void)graft_arena_free(arena);
	return 0;
}
