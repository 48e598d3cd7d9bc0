/* SPDX-License-Identifier: Apache-2.0 */
/* create_parts: functions shared by the files of `create` and `run`. */
#ifndef GRAFT_SIM_CREATE_PARTS_H
#define GRAFT_SIM_CREATE_PARTS_H

#include "base/buffer.h"
#include "create.h"
#include "tree.h"

/* Creates a file with the buffer's content and releases the buffer. */
void sim_parts_buffer(struct sim_tree *tree, const char *path, mode_t mode, struct graft_buffer *take_buffer);

/* Appends the driver's lines of /proc/devices. */
void sim_proc_devices(const struct sim_topology *topology, struct graft_buffer *out);

/* Creates the device nodes and the files that belong to them. */
void sim_create_nodes(struct sim_tree *tree);

/*
 * Creates the descriptions for the loaders of graphics interfaces and the modules of the X server.
 */
void sim_create_graphics(struct sim_tree *tree, const struct sim_places *places);

/* Creates libraries, programs, firmware, descriptions and the loader's cache. */
void sim_create_files(struct sim_tree *tree, const struct sim_places *places);

#endif
