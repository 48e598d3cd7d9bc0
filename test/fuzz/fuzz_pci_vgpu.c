/* SPDX-License-Identifier: Apache-2.0 */
/* The PCI configuration space that a hypervisor shows. */
#include "formats/pci_vgpu.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_pci_vgpu vgpu;

	if (arena)
		(void)graft_pci_vgpu_parse((const char *)data, size, arena, &vgpu);
	(void)graft_arena_free(arena);
	return 0;
}
