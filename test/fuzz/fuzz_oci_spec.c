/* SPDX-License-Identifier: Apache-2.0 */
/* Any config.json: its view, and a variable looked up in it. */
#include "formats/oci_spec.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	struct graft_oci_spec spec;

	if (arena && size <= ((size_t)64 << 10) &&
	    graft_json_document_parse("fuzz", (const char *)data, size, &document, NULL) == 0 &&
	    graft_oci_spec_read(document, arena, &spec, NULL) == 0) {
		(void)graft_oci_spec_check(&spec, NULL);
		(void)graft_oci_spec_env(&spec, "NVIDIA_VISIBLE_DEVICES");
	}
	(void)graft_arena_free(arena);
	return 0;
}
