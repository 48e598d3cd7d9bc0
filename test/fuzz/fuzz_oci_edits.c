/* SPDX-License-Identifier: Apache-2.0 */
/* Edits in any config.json: refused, or JSON again. */
#include "apply/oci/oci_edits.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_cdi_node node = { .path = "/dev/x", .type = "c", .has_numbers = true, .major = 1, .minor = 3 };
	struct graft_cdi_mount mount = { "/h", "/a/b", NULL, (const char *[]){ "ro" }, 1 };
	struct graft_cdi_edits edits = { (const char *[]){ "A=1" }, 1, &node, 1, .mounts = &mount, .n_mounts = 1 };
	auto_json_document struct graft_json_document *document = NULL, *again = NULL;
	struct graft_buffer out = { 0 };

	if (size > 65536 || graft_json_document_parse("fuzz", (const char *)data, size, &document, NULL) < 0)
		return 0;
	(void)graft_oci_remove_runtime_hook(document, NULL);
	(void)graft_oci_apply_edits(document, &edits, NULL);
	if (graft_json_document_write(document, &out, NULL) < 0 ||
	    graft_json_document_parse("again", out.bytes, out.length, &again, NULL) < 0)
		__builtin_trap();
	graft_buffer_done(&out);
	return 0;
}
