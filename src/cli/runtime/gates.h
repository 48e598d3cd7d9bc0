/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gates: what a container gets beside its GPUs in the modes legacy and csv (SPEC runtime-and-hook 10.2). In jit-cdi it is part of the plan.
 *
 * None of it sets NVIDIA_VISIBLE_DEVICES: the hook of mode legacy reads it later, and "void" would leave the container without its GPUs (Q14).
 */
#ifndef GRAFT_CLI_RUNTIME_GATES_H
#define GRAFT_CLI_RUNTIME_GATES_H

#include "cli/runtime/runtime.h"

/* NVIDIA_GDS, NVIDIA_MOFED, NVIDIA_GDRCOPY, NVIDIA_NVSWITCH: nodes and files. A host that has nothing of it is no error. */
int runtime_give_gates(struct runtime_create *create, struct graft_error *err);

/*
 * Mode legacy with cuda-compat-mode = "hook": a hook that lets the loader prefer the image's CUDA compatibility libraries, and one that makes the
 * loader's cache again, without which the former has no effect (Q15).
 */
int runtime_give_compat(struct runtime_create *create, struct graft_error *err);

#endif
