/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology: a simulated host as a value, read from one page of YAML (docs/simulated-driver.md).
 *
 * Reading is strict: an unknown key, a wrong type, a number out of range, a MIG layout that does not fit are errors that
 * name line and column. What the file leaves out is derived, the same way each time: UUIDs from the topology's name and the GPU's place.
 */
#ifndef GRAFT_SIM_TOPOLOGY_H
#define GRAFT_SIM_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "data.h"
#include "models.h"

enum sim_layout {
	SIM_LAYOUT_DEBIAN,
	SIM_LAYOUT_RHEL,
	SIM_LAYOUT_DRIVER_CONTAINER,
	SIM_LAYOUT_NIXOS,
	SIM_LAYOUT_WSL2,
	SIM_LAYOUT_TEGRA
};
extern const char *const sim_layout_names[6];

enum sim_machine { SIM_MACHINE_X86_64, SIM_MACHINE_AARCH64 };

/* Classes of libraries that are installed; compute and utility always are. */
enum sim_files {
	SIM_FILES_BASE = 1u << 0,     /* compute and utility */
	SIM_FILES_VIDEO = 1u << 1,    /* encoding and decoding */
	SIM_FILES_GRAPHICS = 1u << 2, /* OpenGL, EGL, Vulkan and their descriptions */
	SIM_FILES_NGX = 1u << 3,
	SIM_FILES_32_BIT = 1u << 4, /* the 32-bit libraries as well */
	SIM_FILES_FABRIC = 1u << 5, /* not written in the file: there are NVSwitches */
};

/* Drivers beside NVIDIA's that work together with it. */
enum sim_gates {
	SIM_GATE_GDS = 1u << 0,     /* GPUDirect storage */
	SIM_GATE_MOFED = 1u << 1,   /* InfiniBand adapters, one a GPU */
	SIM_GATE_GDRCOPY = 1u << 2, /* GDRCopy */
};

struct sim_mig {
	const char *profile; /* of the GPU instance: "3g.20gb" */
	const char *name;    /* of the compute instance: "1c.3g.20gb", or the profile when it is the whole instance */
	const char *uuid;
	uint32_t gi, ci;
	uint32_t gi_minor, ci_minor;
	uint32_t gi_slices, ci_slices;
	uint32_t memory_mib;
	uint32_t multiprocessors;
};

struct sim_gpu {
	const struct sim_model *model;
	const char *name; /* in the words of this driver */
	const char *uuid;
	uint32_t domain, bus, device;
	uint32_t minor;
	bool mig_enabled;
	bool excluded;
	bool lost; /* by fault */
	struct sim_mig *mig;
	size_t n_mig;
	const void *group; /* where it stands in the file; of use while reading only */
};

/* What --fault and `faults:` can ask for. */
struct sim_faults {
	uint32_t init_delay_ms;
	uint32_t init_fail; /* nvmlReturn_t, 0 = none */
	bool crash;
	const char **missing; /* base names, sonames or absolute paths */
	size_t n_missing;
};

struct sim_majors {
	uint32_t uvm, caps, imex, nvswitch, fs, gdrdrv;
};

struct sim_topology {
	const char *name;
	const char *description;
	const char *driver;        /* version of the libraries; NULL: no driver is installed */
	const char *module;        /* version of the kernel module; NULL: not loaded */
	unsigned int driver_major; /* 550 */
	const char *cuda;          /* "12.4" */
	uint32_t cuda_number;      /* 12040 */
	enum sim_layout layout;
	enum sim_machine machine;
	bool open_module;
	unsigned int files; /* enum sim_files */
	unsigned int gates; /* enum sim_gates */
	bool firmware, persistenced, fabricmanager, mps, filelist, uuids_in_procfs;
	uint32_t nvswitches, imex_channels;
	struct sim_majors majors;
	struct sim_gpu *gpus; /* by bus id */
	size_t n_gpus;
	struct sim_faults faults;
	struct graft_arena *arena; /* owned: all strings and lists */
};

/*
 * Reads a topology from `length` bytes. `file` is the name for messages ("dgx-h100.yaml:12:3: unknown key 'driverr'") and, without
 * directory and suffix, the topology's name if it does not say one. Returns 0, or -1 with GRAFT_FORMAT or GRAFT_TOO_BIG.
 */
int sim_topology_read(const void *bytes, size_t length, const char *file, struct sim_topology **ret_topology,
		      struct graft_error *err);
/* NULL is fine. Returns NULL. */
struct sim_topology *sim_topology_free(struct sim_topology *topology);

/* Adds one fault, "nvml-init-delay=5". -1 with GRAFT_INVALID when it is not one. */
int sim_topology_add_fault(struct sim_topology *topology, const char *fault, struct graft_error *err);
/* The faults that exist, one line each, for --help. */
extern const char sim_fault_help[];

/* Whether a fault says that what has one of these names (NULL-terminated) or lies at or below `path` is missing. */
bool sim_topology_is_missing(const struct sim_topology *topology, const char *path, const char *const *names);

/* Minor of a MIG access node as the driver numbers them; ci < 0 for the GPU instance. */
uint32_t sim_mig_minor(uint32_t gpu_minor, uint32_t gi, int ci);

/* "96.00.89.00.0C": as procfs and NVML show it. */
void sim_vbios(const struct sim_topology *topology, const struct sim_gpu *gpu, char *out, size_t size);

/* The block that goes into the simulated libraries. */
void sim_topology_data(const struct sim_topology *topology, struct sim_data *ret_data);

/* This build's machine. */
enum sim_machine sim_machine_native(void);
const char *sim_machine_name(enum sim_machine machine); /* "x86_64" */

#endif
