/* SPDX-License-Identifier: Apache-2.0 */
/* A PCI address. */
#include "base/arena.h"
#include "formats/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new(4096);
	const char *text = arena && size <= 64 ? graft_arena_strndup(arena, (const char *)data, size) : NULL;
	struct graft_pci_address address;

	if (text && graft_pci_parse(text, &address))
		(void)graft_pci_compare(&address, &address);
	(void)graft_arena_free(arena);
	return 0;
}
