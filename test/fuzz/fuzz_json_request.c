/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form of the request: what was read is written and read again without loss. */
#include <stdlib.h>

#include "fuzz.h"
#include "request/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_request *request = NULL, *again = NULL;
	struct graft_buffer out = { .max = (size_t)8 << 20 };

	if (size > ((size_t)256 << 10) || graft_request_read((const char *)data, size, &request, NULL) < 0)
		return 0;
	graft_request_write(request, &out);
	if (!graft_buffer_failed(&out) && (graft_request_read(out.bytes, out.length, &again, NULL) < 0 ||
					   !graft_record_equal(&graft_request_record, request, again, NULL, 0)))
		abort();
	graft_buffer_done(&out);
	(void)graft_request_free(request);
	(void)graft_request_free(again);
	return 0;
}
