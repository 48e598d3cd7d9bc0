/* SPDX-License-Identifier: Apache-2.0 */
/* Any JSON text: written as it was read, and still JSON when it was edited. */
#include "formats/json/json_document.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_json_document struct graft_json_document *document = NULL, *again = NULL;
	struct graft_buffer out = { 0 };
	struct graft_json_node *list;

	if (size > ((size_t)64 << 10) ||
	    graft_json_document_parse("fuzz", (const char *)data, size, &document, NULL) < 0)
		return 0;
	list = graft_json_make(document, "linux.devices", GRAFT_JSON_ARRAY, NULL);
	graft_json_remove(document, graft_json_node_first(graft_json_document_root(document)));
	if (list)
		(void)graft_json_append(document, list, graft_json_new_object(document, NULL), NULL);
	if (graft_json_document_write(document, &out, NULL) < 0 ||
	    graft_json_document_parse("again", out.bytes, out.length, &again, NULL) < 0)
		__builtin_trap();
	graft_buffer_done(&out);
	return 0;
}
