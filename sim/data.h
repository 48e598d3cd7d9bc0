/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data: what the simulated libraries know about their host. It lives inside the library: a block of this layout in a section of
 * its own, empty in the template, filled when graft-sim copies the template into a driver root. So a library that is bind-mounted into a
 * container finds its topology without /proc/driver/nvidia, without environment and without any other file.
 *
 * Template and writer come from the same build, so the layout needs no versions; `magic` is how the writer finds the block.
 */
#ifndef GRAFT_SIM_DATA_H
#define GRAFT_SIM_DATA_H

#include <stdint.h>

#define SIM_MAX_GPUS 32u
#define SIM_MAX_MIG  8u
#define SIM_MAGIC    "GRAFT-SIMULATED-DRIVER-DATA-1"

struct sim_data_mig {
	char uuid[96];
	char profile[32]; /* "1c.3g.20gb" or "3g.20gb" */
	uint32_t gi, ci;
	uint32_t gi_minor, ci_minor; /* of /dev/nvidia-caps/nvidia-capN */
	uint32_t gi_slices, ci_slices;
	uint32_t multiprocessors;
	uint64_t memory; /* bytes */
};

struct sim_data_gpu {
	char name[96];
	char uuid[96];
	char serial[32];
	char vbios[32];
	uint32_t domain, bus, device;
	uint32_t minor;
	uint32_t pci_id, pci_subsystem_id; /* device in the upper half, vendor in the lower, as NVML has them */
	uint32_t cc_major, cc_minor;
	uint32_t brand, arch; /* NVML values */
	uint32_t multiprocessors;
	uint32_t power_watts;
	uint32_t mig_capable, mig_enabled, lost, display, coherent, n_mig;
	uint64_t memory; /* bytes */
	struct sim_data_mig mig[SIM_MAX_MIG];
};

struct sim_data {
	char magic[32];
	char topology[64];
	char driver_version[32]; /* of the libraries */
	char module_version[32]; /* of the kernel module; differs when a mismatch is simulated */
	char cuda_version[16];   /* "12.4" */
	uint32_t cuda;           /* 12040 */
	uint32_t wsl;            /* GPUs are reached through /dev/dxg */
	uint32_t no_nodes;       /* Tegra: GPUs have no /dev/nvidiaN */
	uint32_t init_delay_ms, init_fail, init_crash;
	uint32_t n_gpus;
	struct sim_data_gpu gpus[SIM_MAX_GPUS]; /* by bus id */
};

#endif
