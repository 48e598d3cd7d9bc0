/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_devices: what the kernel says of the driver's devices, whether they have nodes or not (SPEC ctk-and-cdi 1.7, 1.8): their majors, the GPUs on the PCI bus,
 * the numbers of MIG capabilities; and the nodes that there are. For the commands that make nodes and links, which work before the driver
 * has been used, and where a discovery would find nothing.
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
	bool any; /* /proc/devices has something of NVIDIA's */
	bool has_nvidia, has_uvm, has_caps;
	uint32_t nvidia_major, uvm_major, caps_major; /* where it has them */
	size_t n_gpus;                      /* display functions of NVIDIA on the PCI bus, less virtual ones */
	bool lists_mig;                     /* there is a table of MIG capabilities */
	struct graft_mig_minor *mig_minors; /* in its order; all instances that there could be */
	size_t n_mig_minors;
	const char *params; /* /proc/driver/nvidia/params, "" without it */
};

/* Reads them below `host`, the host's "/". What is not there is none of the driver's. -1: GRAFT_NO_MEMORY, /proc/devices cannot be read. */
int graft_host_read_driver_devices(const struct graft_root *host, struct graft_arena *arena,
				   struct graft_driver_devices *ret_devices, struct graft_error *err);

/*
 * The character devices /dev/nvidia* and /dev/nvidia-caps/nvidia-* below a root that containers can be given one by one: not those of nvidia-fs, NVSwitch and NVLink.
 * In the order of their paths, numbers less than ten before the others. Path, numbers, owner and mode are set. -1: GRAFT_NO_MEMORY.
 */
int graft_host_list_driver_nodes(const struct graft_root *root, struct graft_arena *arena,
				 struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err);

#endif
