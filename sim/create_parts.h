/* SPDX-License-Identifier: Apache-2.0 */
/* create_parts: what the files of `create` and `run` share among themselves. */
#ifndef GRAFT_SIM_CREATE_PARTS_H
#define GRAFT_SIM_CREATE_PARTS_H

#include "base/buffer.h"
#include "create.h"
#include "tree.h"

/* A file with the buffer's content; the buffer is emptied. */
void sim_parts_buffer(struct sim_tree *tree, const char *path, mode_t mode, struct graft_buffer *take_buffer);

/* The driver's lines of /proc/devices. */
void sim_proc_devices(const struct sim_topology *topology, struct graft_buffer *out);
/* Whether the driver has /dev/nvidia-caps. */
bool sim_has_caps(const struct sim_topology *topology);

/* Device nodes, and what belongs to them. */
void sim_create_nodes(struct sim_tree *tree);

/* Descriptions for loaders of graphics interfaces, modules of the X server. */
void sim_create_graphics(struct sim_tree *tree, const struct sim_places *places);

/* Libraries, programs, firmware, descriptions and the loader's cache. */
void sim_create_files(struct sim_tree *tree, const struct sim_places *places);

#endif
