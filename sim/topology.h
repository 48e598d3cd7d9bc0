/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology: a simulated host, read from one page of YAML (docs/simulated-driver.md).
 *
 * Reading is strict: an unknown key, a wrong type, a number out of range or a MIG layout that does
 * not fit is an error that names line and column. Values missing from the file are derived
 * reproducibly, such as UUIDs from the topology's name and the index of the GPU.
 */
#ifndef GRAFT_SIM_TOPOLOGY_H
#define GRAFT_SIM_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
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

/* Classes of libraries that are installed; SIM_FILES_BASE always is. */
enum sim_files {
	SIM_FILES_BASE = 1u << 0,     /* compute and utility */
	SIM_FILES_VIDEO = 1u << 1,    /* encoding and decoding */
	SIM_FILES_GRAPHICS = 1u << 2, /* OpenGL, EGL, Vulkan and their descriptions */
	SIM_FILES_NGX = 1u << 3,
	SIM_FILES_32_BIT = 1u << 4, /* also the 32-bit libraries */
	SIM_FILES_FABRIC = 1u << 5, /* not set by the file but derived: the host has NVSwitches */
};

/* Additional drivers that work together with NVIDIA's. */
enum sim_gates {
	SIM_GATE_GDS = 1u << 0,     /* GPUDirect storage */
	SIM_GATE_MOFED = 1u << 1,   /* InfiniBand adapters, one per GPU */
	SIM_GATE_GDRCOPY = 1u << 2, /* GDRCopy */
};

struct sim_mig {
	const char *profile; /* of the GPU instance: "3g.20gb" */
	const char *name;    /* of the compute instance: "1c.3g.20gb", or the profile if it fills the GPU instance */
	const char *uuid;
	uint32_t gi, ci;
	uint32_t gi_minor, ci_minor;
	uint32_t gi_slices, ci_slices;
	uint32_t memory_mib;
	uint32_t multiprocessors;
};

struct sim_gpu {
	const struct sim_model *model;
	const char *name; /* as this driver version reports it */
	const char *uuid;
	uint32_t domain, bus, device;
	uint32_t minor;
	uint32_t numa_node;
	const char *bridges; /* from the host bridge down: "pci0000:16/0000:16:01.0" */
	bool mig_enabled;
	bool excluded;
	bool lost; /* fallen off the bus, by a fault */
	struct sim_mig *mig;
	size_t n_mig;
	const void *group; /* the group in the file; valid only while reading */
};

/* NVLinks between two GPUs, by index. */
struct sim_nvlink {
	uint32_t a, b, count;
};

struct sim_fault_xid {
	uint32_t gpu; /* index */
	uint32_t number;
};

/* The faults that --fault and `faults:` can set. */
struct sim_faults {
	uint32_t init_delay_ms;
	uint32_t init_fail; /* nvmlReturn_t; 0: none */
	bool crash;
	struct sim_fault_xid *xids; /* lines for the kernel log, in this order */
	size_t n_xids;
	bool needs_log;       /* only has an effect if there is a kernel log */
	const char **missing; /* base names, sonames or absolute paths */
	size_t n_missing;
};

struct sim_majors {
	uint32_t uvm, caps, imex, nvswitch, fs, gdrdrv;
};

struct sim_topology {
	const char *name;
	const char *description;
	const char *driver;        /* version of the libraries; NULL: not installed */
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
	struct sim_gpu *gpus; /* sorted by bus id */
	size_t n_gpus;
	struct sim_nvlink *nvlinks; /* declared ones; without any, they follow from the models */
	size_t n_nvlinks;
	struct sim_faults faults;
	struct graft_arena *arena; /* owned; contains all strings and lists */
};

/*
 * Reads a topology from `length` bytes. `file` is used in messages ("dgx-h100.yaml:12:3: unknown
 * key 'driverr'") and, without directory and suffix, as the topology's name if the file does not
 * set one. The caller releases *ret_topology with sim_topology_free(). Returns 0, or -1 with
 * GRAFT_FORMAT, GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int sim_topology_read(const void *bytes, size_t length, const char *file, struct sim_topology **ret_topology,
		      struct graft_error *err);
/* Releases a topology, which may be NULL. Returns NULL. */
struct sim_topology *sim_topology_free(struct sim_topology *topology);

/*
 * Adds one fault, such as "nvml-init-delay=5". Returns 0, or -1 with GRAFT_INVALID if it is not
 * valid.
 */
int sim_topology_add_fault(struct sim_topology *topology, const char *fault, struct graft_error *err);
/*
 * All faults: word, "=" and the name of the value if it has one, function that adds it, what it
 * does. Help, man page, completion and parser come from this list.
 */
#define SIM_FAULT_LIST(X)                                                                                      \
	X("nvml-init-delay", "=", "SECONDS", add_delay, "NVML takes that long to initialise, for example 0.5") \
	X("nvml-init-fail", "=", "CODE", add_failure, "Initialising NVML fails with that nvmlReturn_t code")   \
	X("nvml-mismatch", "", "", add_mismatch, "Kernel module and libraries have different versions")        \
	X("nvml-crash", "", "", add_crash, "Initialising NVML ends in SIGSEGV")                                \
	X("gpu-lost", "=", "INDEX", add_lost, "That GPU has fallen off the bus")                               \
	X("xid", "=", "INDEX:NUMBER", add_xid, "The kernel log reports that Xid for that GPU")                 \
	X("missing", "=", "NAME", add_missing, "That file, or all below that path, is missing")

/* Writes the lines that faults add to the kernel log. */
void sim_fault_log(const struct sim_topology *topology, struct graft_buffer *out);

/*
 * Returns whether a fault removes `path`: by one of its names (NULL-terminated), or by a path that
 * it is equal to or below.
 */
bool sim_topology_is_missing(const struct sim_topology *topology, const char *path, const char *const *names);

/*
 * Returns the minor number of a MIG access node, as the driver assigns them; ci < 0 for the GPU
 * instance.
 */
uint32_t sim_mig_minor(uint32_t gpu_minor, uint32_t gi, int ci);

/* Writes the VBIOS version as procfs and NVML show it, such as "96.00.89.00.0C". */
void sim_vbios(const struct sim_topology *topology, const struct sim_gpu *gpu, char *out, size_t size);

/* Fills the block that goes into the simulated libraries. */
void sim_topology_data(const struct sim_topology *topology, struct sim_data *ret_data);

/* Returns the machine of this build. */
enum sim_machine sim_machine_native(void);
const char *sim_machine_name(enum sim_machine machine); /* "x86_64" */

#endif
