/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the table of leases: an accepted file is written as it was read, and contains only
 * printable characters.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "lease/lease.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	struct graft_buffer out = { .max = 0 };
	struct graft_lease lease, again;

	if (arena && graft_lease_parse((const char *)data, size, arena, &lease, NULL) == 0) {
		graft_lease_write(&lease, &out);
		if (graft_lease_parse(out.bytes, out.length, arena, &again, NULL) < 0 ||
		    !graft_record_equal(&graft_lease_record, &lease, &again, NULL, 0))
			abort();
		graft_lease_describe(&lease, 1, &out);
	}
	graft_buffer_done(&out);
	(void)graft_arena_free(arena);
	return 0;
}
