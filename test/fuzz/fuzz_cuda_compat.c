/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a CUDA forward-compatibility library of an image describes itself: the bytes of a note, which
 * may be anything.
 */
#include "formats/loader/cuda_compat.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_cuda_compat compat;
	struct graft_error err;

	if (arena && graft_cuda_compat_parse_note(data, size, 4, "input", arena, &compat, &err) > 0)
		(void)graft_cuda_compat_suits(&compat, "575.57.08", "570.1.1", "12.8");
	(void)graft_arena_free(arena);
	return 0;
}
