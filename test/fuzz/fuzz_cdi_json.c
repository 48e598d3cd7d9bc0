/* SPDX-License-Identifier: Apache-2.0 */
/* A CDI spec in JSON: what is read has no faults but harmless ones, and what is refused has another. */
#include "formats/cdi/cdi.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
	struct graft_cdi_faults faults = { .arena = arena };
	struct graft_cdi_spec spec;

	if (arena && size <= ((size_t)64 << 10) &&
	    graft_cdi_spec_examine("fuzz.json", (const char *)data, size, &faults, &spec, NULL) == 0) {
		bool good = true;

		for (size_t i = 0; i < faults.n; i++)
			good = good && faults.items[i].harmless;
		if (good != (graft_cdi_spec_read("fuzz.json", (const char *)data, size, arena, &spec, NULL) == 0))
			__builtin_trap();
	}
	(void)graft_arena_free(arena);
	return 0;
}
