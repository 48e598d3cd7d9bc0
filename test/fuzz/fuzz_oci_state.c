/* SPDX-License-Identifier: Apache-2.0 */
/* The state on a hook's standard input. */
#include "formats/oci_spec.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_oci_state state;

	if (arena && size <= ((size_t)64 << 10))
		(void)graft_oci_state_read((const char *)data, size, arena, &state, NULL);
	(void)graft_arena_free(arena);
	return 0;
}
