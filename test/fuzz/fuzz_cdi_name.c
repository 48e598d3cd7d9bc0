/* SPDX-License-Identifier: Apache-2.0 */
/* A qualified device name: an accepted one can be rebuilt from its parts. */
#include <string.h>

#include "formats/cdi/cdi.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	char *text = arena && size <= 4096 ? graft_arena_strndup(arena, (const char *)data, size) : NULL;
	struct graft_cdi_name name;

	if (text && graft_cdi_parse_name(text, arena, &name, NULL) == 0) {
		const char *again = graft_arena_printf(arena, "%s/%s=%s", name.vendor, name.class_, name.device);

		if (!graft_cdi_is_qualified(text) || !again || strcmp(again, text) != 0)
			__builtin_trap();
	}
	(void)graft_arena_free(arena);
	return 0;
}
