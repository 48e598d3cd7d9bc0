/* SPDX-License-Identifier: Apache-2.0 */
/* A CDI spec in JSON. */
#include "formats/cdi_tree.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
	struct graft_error err = { .status = GRAFT_OK };
	struct cdi_builder builder = { .file = "fuzz.json", .arena = arena, .err = &err };
	const struct cdi_value *root;

	if (arena && size <= ((size_t)64 << 10) && cdi_tree_from_json(&builder, (const char *)data, size, &root) == 0 &&
	    builder.n_values == 0)
		__builtin_trap();
	cdi_builder_done(&builder);
	(void)graft_arena_free(arena);
	return 0;
}
