/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a Docker daemon about itself. */
#include "engine/docker_info.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	struct graft_docker_info info;

	if (arena && size <= ((size_t)64 << 10))
		(void)graft_docker_info_parse((const char *)data, size, arena, &info, NULL);
	(void)graft_arena_free(arena);
	return 0;
}
