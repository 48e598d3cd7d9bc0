/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF reader: bytes of a library that may be anything. */
#include "base/arena.h"
#include "formats/loader/elf.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)1024 * 1024);
	struct graft_elf elf;
	struct graft_error err;

	if (arena)
		(void)graft_elf_read_bytes(data, size, "input", arena, &elf, &err);
	(void)graft_arena_free(arena);
	return 0;
}
