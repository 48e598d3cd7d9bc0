/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from a spec and written is read as the same, in both formats. Only annotations may keep a spec from being written. */
#include <string.h>

#include "formats/cdi/cdi_write.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
	struct graft_buffer json = { 0 }, yaml = { 0 }, again = { 0 };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_spec spec, copy;

	if (arena && size <= 65536 && graft_cdi_spec_read("f", (const char *)data, size, arena, &spec, NULL) == 0) {
		if (graft_cdi_spec_write(&spec, GRAFT_CDI_JSON, &json, &err) < 0) {
			if (err.status != GRAFT_INVALID || !strstr(err.msg, "annotation"))
				__builtin_trap();
		} else if (graft_cdi_spec_write(&spec, GRAFT_CDI_YAML, &yaml, NULL) < 0 ||
			   graft_cdi_spec_read("f", yaml.bytes, yaml.length, arena, &copy, NULL) < 0 ||
			   graft_cdi_spec_write(&copy, GRAFT_CDI_JSON, &again, NULL) < 0 ||
			   strcmp(json.bytes, again.bytes) != 0) {
			__builtin_trap();
		}
	}
	graft_buffer_done(&json), graft_buffer_done(&yaml), graft_buffer_done(&again);
	(void)graft_arena_free(arena);
	return 0;
}
