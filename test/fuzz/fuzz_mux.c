/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of NRI: received in pieces of any size, they give the same result as at once. */
#include <string.h>

#include "fuzz.h"
#include "rpc/mux.h"

static int add_to(void *arg, uint32_t stream, const uint8_t *bytes, size_t n, struct graft_error *err)
{
	(void)stream;
	(void)err;
	graft_buffer_add(arg, bytes, n);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_mux_reader whole = { .n_header = 0 }, parts = { .n_header = 0 };
	struct graft_buffer a = { .max = 0 }, b = { .max = 0 };
	size_t step = size > 0 ? 1u + data[0] % 16u : 1;
	int rc = graft_mux_read(&whole, data, size, add_to, &a, NULL), rc_parts = 0;

	for (size_t at = 0; at < size && rc_parts == 0; at += step)
		rc_parts = graft_mux_read(&parts, data + at, step < size - at ? step : size - at, add_to, &b, NULL);
	if (rc != rc_parts || a.length != b.length ||
	    memcmp(graft_buffer_text(&a), graft_buffer_text(&b), a.length) != 0)
		__builtin_trap();
	graft_buffer_done(&a);
	graft_buffer_done(&b);
	return 0;
}
