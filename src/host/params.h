/* SPDX-License-Identifier: Apache-2.0 */
/* params: the driver's parameters, as a container shall see them (SPEC ctk-and-cdi 2.5). */
#ifndef GRAFT_HOST_PARAMS_H
#define GRAFT_HOST_PARAMS_H

#include "base/arena.h"
#include "base/error.h"

#define GRAFT_PARAMS_PATH "/proc/driver/nvidia/params"

/*
 * Reads the host's file; *ret_text is its text with the line that tells the driver to make no device nodes, in the arena. NULL: there is no such file, or it
 * says so already. -1: it cannot be read.
 */
int graft_params_for_container(struct graft_arena *arena, const char **ret_text, struct graft_error *err);

#endif
