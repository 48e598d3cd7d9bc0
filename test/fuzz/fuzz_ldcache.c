/* SPDX-License-Identifier: Apache-2.0 */
/* The loader cache: what is read is written, and what is written is read again. */
#include <stdlib.h>

#include "base/arena.h"
#include "formats/loader/ldcache.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	struct graft_buffer out = { .max = (size_t)8 << 20 };
	struct graft_ldcache cache, again;

	if (arena && size <= ((size_t)1 << 20) && graft_ldcache_read(data, size, "input", arena, &cache, NULL) == 0 &&
	    graft_ldcache_write(&cache, &out, NULL) == 0 &&
	    graft_ldcache_read(out.bytes, out.length, "output", arena, &again, NULL) < 0)
		abort();
	graft_buffer_done(&out);
	(void)graft_arena_free(arena);
	return 0;
}
