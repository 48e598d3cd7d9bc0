/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware: what follows from the GPUs of a host: NVLinks, how far GPUs are from each other, the MIG
 * profiles as NVML numbers them, and the places of MIG devices on the GPU.
 */
#ifndef GRAFT_SIM_HARDWARE_H
#define GRAFT_SIM_HARDWARE_H

#include "topology.h"

/*
 * Returns whether `bridges` is the path from a host bridge down to a GPU: "pci0000:16", then the
 * addresses of the bridges below it, separated by slashes.
 */
bool sim_hardware_bridges_valid(const char *bridges);
/* Returns whether each bridge that two GPUs share is at the same place for both. */
bool sim_hardware_bridges_agree(const char *a, const char *b);
/* Sets how far the other GPUs are from a GPU. */
void sim_hardware_distances(const struct sim_topology *topology, const struct sim_gpu *gpu, struct sim_data_gpu *out);

/* Return how many NVLinks a model has, and how many of a GPU's links the topology has declared. */
uint32_t sim_hardware_max_links(const struct sim_model *model);
uint32_t sim_hardware_used_links(const struct sim_topology *topology, uint32_t gpu);
/* Sets the NVLinks of a GPU: their number, version and speed, and where they lead. */
void sim_hardware_links(const struct sim_topology *topology, const struct sim_gpu *gpu, struct sim_data_gpu *out);

/* Sets the state of the NVLink fabric. */
void sim_hardware_fabric(const struct sim_topology *topology, struct sim_data *out);

/*
 * Sets the MIG profiles of a GPU, and of its MIG devices, which `out` already contains, profile and
 * place.
 */
void sim_hardware_mig(const struct sim_gpu *gpu, struct sim_data_gpu *out);

#endif
