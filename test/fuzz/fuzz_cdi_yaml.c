/* SPDX-License-Identifier: Apache-2.0 */
/* A CDI spec in YAML; what is read must name itself and its devices. */
#include "formats/cdi/cdi.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
	struct graft_cdi_spec spec;

	if (arena && size <= ((size_t)64 << 10) &&
	    graft_cdi_spec_read("fuzz.yaml", (const char *)data, size, arena, &spec, NULL) == 0) {
		if (!spec.vendor || !spec.class_ || spec.n_devices == 0)
			__builtin_trap();
		for (size_t i = 0; i < spec.n_devices; i++) {
			if (!spec.devices[i].name || spec.devices[i].name[0] == '\0')
				__builtin_trap();
		}
	}
	(void)graft_arena_free(arena);
	return 0;
}
