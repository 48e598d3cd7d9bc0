/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF reader: bytes of a library that may be anything. */
#include "base/arena.h"
#include "base/cleanup.h"
#include "formats/loader/elf.h"
#include "fuzz.h"

#include "../memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)1024 * 1024);
	auto_close int fd = memory_file(data, size);
	struct graft_elf elf;
	struct graft_error err;

	if (arena && fd >= 0)
		(void)graft_elf_read_fd(fd, "input", arena, &elf, &err);
	(void)graft_arena_free(arena);
	return 0;
}
