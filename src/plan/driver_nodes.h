/* SPDX-License-Identifier: Apache-2.0 */
/* driver_nodes: which device nodes the driver wants, from what the kernel says of its devices (SPEC ctk-and-cdi 1.7, 1.8). Pure. */
#ifndef GRAFT_PLAN_DRIVER_NODES_H
#define GRAFT_PLAN_DRIVER_NODES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/driver_devices.h"

/*
 * The nodes that no GPU owns: /dev/nvidiactl, nvidia-modeset, nvidia-uvm, nvidia-uvm-tools. Path and numbers are set. -1: GRAFT_NO_DRIVER "failed to
 * create devices info: no NVIDIA devices found", "failed to determine major: invalid device node"; GRAFT_NO_MEMORY.
 */
int graft_plan_control_nodes(const struct graft_driver_devices *devices, struct graft_arena *arena,
			     struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err);
/*
 * All: those, the two of MIG's management, then each GPU's, followed by its MIG capabilities, all instances that the driver lists. None without a GPU. -1:
 * GRAFT_NO_DRIVER "missing required device major nvidia-uvm"; GRAFT_NO_MEMORY.
 */
int graft_plan_driver_nodes(const struct graft_driver_devices *devices, struct graft_arena *arena,
			    struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err);

/* Whether a name in /dev is that of a GPU's node: "nvidia0". Whether a path is: "/dev/nvidia0". */
bool graft_is_gpu_node_name(const char *name);
bool graft_is_gpu_node(const char *path);

#endif
