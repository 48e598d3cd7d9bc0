/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_nodes: which device nodes the driver needs, given what the kernel reports about its
 * devices (SPEC ctk-and-cdi 1.7, 1.8). Pure.
 */
#ifndef GRAFT_PLAN_DRIVER_NODES_H
#define GRAFT_PLAN_DRIVER_NODES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/driver_devices.h"

/*
 * Lists the nodes that belong to no GPU: /dev/nvidiactl, nvidia-modeset, nvidia-uvm,
 * nvidia-uvm-tools. Sets path and numbers. Returns -1 with GRAFT_NO_DRIVER "failed to create
 * devices info: no NVIDIA devices found" or "failed to determine major: invalid device node", or
 * with GRAFT_NO_MEMORY.
 */
int graft_plan_control_nodes(const struct graft_driver_devices *devices, struct graft_arena *arena,
			     struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err);
/*
 * Lists all nodes: those above, the two of MIG's management, then for each GPU its node and its MIG
 * capabilities, for all instances that the driver lists. Empty without a GPU. Returns -1 with
 * GRAFT_NO_DRIVER "missing required device major nvidia-uvm", or with GRAFT_NO_MEMORY.
 */
int graft_plan_driver_nodes(const struct graft_driver_devices *devices, struct graft_arena *arena,
			    struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err);

/* Return whether a name in /dev ("nvidia0") or a path ("/dev/nvidia0") is that of a GPU's node. */
bool graft_is_gpu_node_name(const char *name);
bool graft_is_gpu_node(const char *path);

#endif
