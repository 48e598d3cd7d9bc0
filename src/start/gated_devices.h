/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gated_devices: what a container gets besides its GPUs in the modes legacy and csv (SPEC
 * runtime-and-hook 10.2). In jit-cdi it is part of the plan.
 *
 * None of this sets NVIDIA_VISIBLE_DEVICES: the hook of mode legacy reads it later, and "void"
 * would leave the container without its GPUs (SPEC runtime-and-hook Q14).
 */
#ifndef GRAFT_START_GATED_DEVICES_H
#define GRAFT_START_GATED_DEVICES_H

#include "start/start.h"

/*
 * Plans the nodes and files of NVIDIA_GDS, NVIDIA_MOFED, NVIDIA_GDRCOPY and NVIDIA_NVSWITCH, as far
 * as the container requests them. A host without such devices is not an error. The caller frees
 * *ret_plan, which is NULL if none is requested. -1: as graft_host_discover() and
 * graft_plan_make().
 */
int graft_start_plan_gates(const struct graft_start *create, struct graft_plan **ret_plan, struct graft_error *err);

/* Plans and gives them. -1: as graft_start_plan_gates() and graft_start_give(). */
int graft_start_give_gates(struct graft_start *create, struct graft_error *err);

/*
 * In mode legacy with cuda-compat-mode = "hook": adds a hook that makes the loader prefer the
 * image's CUDA compatibility libraries, and a second hook to rebuild the loader's cache, without
 * which the first has no effect (SPEC runtime-and-hook Q15). -1: GRAFT_NO_DRIVER if the driver's
 * version is unknown, and as graft_host_discover() and graft_oci_apply_edits().
 */
int graft_start_give_compat(struct graft_start *create, struct graft_error *err);

#endif
