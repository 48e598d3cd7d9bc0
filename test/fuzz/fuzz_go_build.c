/* SPDX-License-Identifier: Apache-2.0 */
/* The build information of a Go program: bytes that may be anything. */
#include "formats/loader/go_build.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);

	if (arena)
		(void)graft_go_build_parse(data, size, "tags.cncf.io/container-device-interface", arena);
	(void)graft_arena_free(arena);
	return 0;
}
