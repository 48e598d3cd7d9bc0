/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's list of its files. */
#include "fuzz.h"
#include "host/survey.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	const char **names;
	size_t n;

	if (arena && size <= ((size_t)64 << 10))
		(void)graft_filelist_read((const char *)data, size, arena, &names, &n, NULL);
	(void)graft_arena_free(arena);
	return 0;
}
