/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_devices: what the kernel reports about the driver's devices, whether or not they have
 * nodes (SPEC ctk-and-cdi 1.7, 1.8): their majors, the GPUs on the PCI bus and the numbers of MIG
 * capabilities; and the nodes that exist. For commands that make nodes and links: these run before
 * the driver has been used, when a discovery would find nothing.
 */
#ifndef GRAFT_HOST_DRIVER_DEVICES_H
#define GRAFT_HOST_DRIVER_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/root.h"
#include "formats/procfs.h"
#include "host/inventory.h"

struct graft_driver_devices {
	bool any; /* /proc/devices has a driver of NVIDIA's */
	bool has_nvidia, has_uvm, has_caps;
	uint32_t nvidia_major, uvm_major, caps_major; /* valid if the corresponding has_* is set */
	size_t n_gpus;                      /* NVIDIA's display functions on the PCI bus, not counting virtual ones */
	bool lists_mig;                     /* a table of MIG capabilities exists */
	struct graft_mig_minor *mig_minors; /* in the table's order; includes every instance that could exist */
	size_t n_mig_minors;
	const char *params; /* text of /proc/driver/nvidia/params; "" if there is none */
};

/*
 * Reads the facts below `host`, the host's "/". What does not exist is reported as absent. Returns
 * -1 with GRAFT_NO_MEMORY, or if /proc/devices cannot be read.
 */
int graft_host_read_driver_devices(const struct graft_root *host, struct graft_arena *arena,
				   struct graft_driver_devices *ret_devices, struct graft_error *err);

/*
 * Lists the character devices /dev/nvidia* and /dev/nvidia-caps/nvidia-* below a root that
 * containers can be given one by one, so not those of nvidia-fs, NVSwitch and NVLink. Sorted by
 * path, with numbers in numerical order. Sets path, numbers, owner and mode. Returns -1 with
 * GRAFT_NO_MEMORY.
 */
int graft_host_list_driver_nodes(const struct graft_root *root, struct graft_arena *arena,
				 struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err);

#endif
