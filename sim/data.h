/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data: the facts about the host that the simulated libraries contain. Each library has a block of
 * this layout in a section of its own, empty in the template and filled in when graft-sim copies
 * the template into a driver root. A library that is bind-mounted into a container thus finds its
 * topology without /proc/driver/nvidia, without an environment and without any other file.
 *
 * Template and writer come from the same build, so the layout has no version. The writer finds the
 * block by `magic`.
 */
#ifndef GRAFT_SIM_DATA_H
#define GRAFT_SIM_DATA_H

#include <stdint.h>

#define SIM_MAX_GPUS           32u
#define SIM_MAX_MIG            8u
#define SIM_MAX_MIG_PROFILES   10u   /* profiles of GPU instances that NVML numbers */
#define SIM_MAX_LINKS          18u   /* NVLinks of one GPU */
#define SIM_NVSWITCH_FIRST_BUS 0x05u /* NVSwitches are at 0000:05:00.0, 0000:06:00.0, ... */
#define SIM_MAGIC              "GRAFT-SIMULATED-DRIVER-DATA-1"

/*
 * Returns the NUMA node of a processor of the machine: each node has the same number of consecutive
 * ones. sysfs and NVML agree through this function.
 */
static inline uint32_t sim_cpu_node(uint32_t cpu, uint32_t n_cpus, uint32_t n_nodes)
{
	return cpu * n_nodes / n_cpus;
}

/* What is at the other end of an NVLink, if it is not a GPU. */
enum { SIM_LINK_DOWN = 255, SIM_LINK_SWITCH = 254, SIM_LINK_RACK = 253 };

struct sim_data_mig {
	char uuid[96];
	char profile[32]; /* "1c.3g.20gb" or "3g.20gb" */
	uint32_t gi, ci;
	uint32_t gi_minor, ci_minor; /* N of /dev/nvidia-caps/nvidia-capN */
	uint32_t gi_slices, ci_slices;
	uint32_t gi_profile; /* index into sim_data_gpu.mig_profiles */
	uint32_t gi_start;   /* first of the memory slices of the GPU instance */
	uint32_t ci_start;   /* first compute slice within the GPU instance */
	uint32_t multiprocessors;
	uint64_t memory; /* bytes */
};

/* A profile of GPU instances; its index is NVML's number, such as NVML_GPU_INSTANCE_PROFILE_3_SLICE. */
struct sim_data_mig_profile {
	char name[32]; /* "" if the GPU does not have the profile */
	uint32_t id;   /* as `nvidia-smi mig -lgip` shows it */
	uint32_t slices, memory_slices;
	uint32_t instances; /* how many fit on an empty GPU */
	uint32_t multiprocessors, slice_multiprocessors;
	uint32_t memory_mib;
};

struct sim_data_gpu {
	char name[96];
	char uuid[96];
	char serial[32];
	char vbios[32];
	uint32_t domain, bus, device;
	uint32_t minor;
	uint32_t pci_id, pci_subsystem_id; /* device in the upper half, vendor in the lower, as in NVML */
	uint32_t cc_major, cc_minor;
	uint32_t brand, arch; /* NVML values */
	uint32_t multiprocessors;
	uint32_t power_watts;
	uint32_t mig_capable, mig_enabled, lost, display, coherent, n_mig;
	uint32_t numa_node;
	uint32_t n_links, link_version, link_speed; /* NVLinks; speed in MB/s of one link */
	uint8_t links[SIM_MAX_LINKS];               /* where each leads: index in sim_data.gpus, or SIM_LINK_... */
	uint8_t distances[SIM_MAX_GPUS];            /* to each GPU, as nvmlGpuTopologyLevel_t */
	uint64_t memory;                            /* bytes */
	struct sim_data_mig_profile mig_profiles[SIM_MAX_MIG_PROFILES];
	struct sim_data_mig mig[SIM_MAX_MIG];
};

struct sim_data {
	char magic[32];
	char driver_version[32]; /* version of the libraries */
	char module_version[32]; /* version of the kernel module; differs to simulate a mismatch */
	uint32_t cuda;           /* 12040 */
	uint32_t wsl;            /* GPUs are reached through /dev/dxg */
	uint32_t no_nodes;       /* Tegra: GPUs have no /dev/nvidiaN */
	uint32_t init_delay_ms, init_fail, init_crash;
	uint32_t firmware; /* the GPUs run GSP firmware */
	uint32_t fabricmanager;
	uint32_t n_switches; /* NVSwitches on the host's own PCI buses, from 0000:05:00.0 on */
	uint32_t fabric;     /* state of the NVLink fabric, as nvmlGpuFabricInfo_t.state */
	unsigned char fabric_uuid[16];
	uint32_t n_gpus;
	struct sim_data_gpu gpus[SIM_MAX_GPUS]; /* sorted by bus id */
};

#endif
