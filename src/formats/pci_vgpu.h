/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pci_vgpu: what the PCI configuration space of a virtual GPU contains about its host. Bytes in,
 * values out. The bytes come from the hypervisor and are not trusted.
 */
#ifndef GRAFT_FORMATS_PCI_VGPU_H
#define GRAFT_FORMATS_PCI_VGPU_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct graft_pci_vgpu {
	const char *host_driver_version; /* "470.63" */
	const char *host_driver_branch;  /* "r470_00" */
};

/*
 * Reads the configuration space of a PCI device. Returns whether the device is a virtual GPU whose
 * host has identified itself; the texts are in the arena, NULL if that is exhausted. A truncated
 * space, as unprivileged users see it, contains nothing of this.
 */
bool graft_pci_vgpu_parse(const char *space, size_t length, struct graft_arena *arena, struct graft_pci_vgpu *ret_vgpu);

#endif
