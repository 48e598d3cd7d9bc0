/* SPDX-License-Identifier: Apache-2.0 */
/* Any JSON text. */
#include "formats/json/json.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_json_document *json = NULL;

	if (size <= ((size_t)64 << 10) && graft_json_parse((const char *)data, size, 64, &json, NULL) == 0)
		graft_json_document_free(json);
	return 0;
}
