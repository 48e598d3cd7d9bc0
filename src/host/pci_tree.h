/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pci_tree: where the GPUs of an inventory are: NUMA nodes, the PCI bridges above each, and NVLink
 * switches, from sysfs. Nothing wakes a GPU.
 */
#ifndef GRAFT_HOST_PCI_TREE_H
#define GRAFT_HOST_PCI_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/record.h"
#include "host/inventory.h"
#include "host/nvml.h"

struct graft_pci_place {
	const char *bus_id; /* "00000000:1b:00.0", as in the inventory */
	bool has_numa_node;
	uint32_t numa_node;
	uint32_t class_; /* PCI class: 0x030000 drives displays, 0x030200 does not; 0 = unknown */
	/* From the host bridge down: "pci0000:16", "0000:16:01.0", ...; empty if unknown. */
	const char **bridges;
	size_t n_bridges;
	struct graft_nvml_link *links; /* NVLinks to other GPUs; only after graft_pci_tree_add_links() */
	size_t n_links;
};

struct graft_pci_tree {
	struct graft_pci_place *gpus; /* in the order of the inventory */
	size_t n_gpus;
	uint32_t n_nvswitches; /* on the host's PCI buses; if there are any, all GPUs are linked to each other alike */
};
extern const struct graft_record graft_pci_place_record;

/*
 * Reads the places of the GPUs below `host_root`, which has the kernel's sysfs. Missing facts stay
 * unknown. Strings are in the arena. Returns 0, or -1 with GRAFT_NO_MEMORY, or if the root cannot
 * be opened.
 */
int graft_pci_tree_read(const char *host_root, const struct graft_inventory *inventory, struct graft_arena *arena,
			struct graft_pci_tree *ret_tree, struct graft_error *err);

/*
 * Takes over the NVLinks that NVML reported between the GPUs of the tree (GRAFT_NVML_LINKS); those
 * to other devices are left out. Strings are those of the snapshot. Returns 0, or -1 with
 * GRAFT_NO_MEMORY.
 */
int graft_pci_tree_add_links(struct graft_pci_tree *tree, const struct graft_nvml_snapshot *snapshot,
			     struct graft_arena *arena, struct graft_error *err);
/* Returns the number of NVLinks between two GPUs, as reported by either end: one may not answer. */
uint32_t graft_pci_tree_links(const struct graft_pci_place *a, const struct graft_pci_place *b);

#endif
