/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory: what this host has, and where each fact was read. Plain data with a JSON form
 * (docs/FORMATS.md).
 *
 * Invariants: paths are absolute below the driver root (they do not contain the prefix `root`),
 * with links resolved unless noted otherwise. Lists are in the order of the existing stack. An
 * unknown string is NULL, never empty. All memory belongs to the arena.
 */
#ifndef GRAFT_HOST_INVENTORY_H
#define GRAFT_HOST_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "formats/record.h"
#include "host/capability.h"

#define GRAFT_INVENTORY_VERSION 1u

enum graft_platform { GRAFT_PLATFORM_NONE, GRAFT_PLATFORM_NATIVE, GRAFT_PLATFORM_WSL2, GRAFT_PLATFORM_TEGRA };

/* The source of what NVML was asked for. */
#define GRAFT_SOURCE_NVML "nvml"

/*
 * A text fact with its source ("/proc/driver/nvidia/version", "nvml", "bounded from driver
 * version").
 */
struct graft_fact {
	const char *value;  /* NULL = not known */
	const char *source; /* NULL if `value` is */
};

/* A character device. */
struct graft_node {
	const char *path;      /* "/dev/nvidia0" */
	uint32_t major, minor; /* the actual ones, or those it must have if it does not exist */
	bool present;          /* a character device with these numbers is at `path` below the driver root */
	uint32_t mode;         /* permission bits; 0 if absent */
	uint32_t uid, gid;
	const char *source;
};

struct graft_library {
	const char *path;   /* resolved: /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14 */
	const char *soname; /* libcuda.so.1 */
	uint32_t abi_flags; /* ld.so.cache flags */
	enum graft_class class_;
	const char *source; /* "/etc/ld.so.cache", ".../sandboxutils-filelist.json", "directory scan" */
	/*
	 * A link to it for linking programs (libcuda.so) is in the same directory; only with
	 * GRAFT_NEED_EVERY_LIBRARY
	 */
	bool development_link;
};

struct graft_binary {
	const char *path;        /* resolved */
	const char *name;        /* nvidia-smi */
	enum graft_class class_; /* UTILITY or COMPUTE */
	const char *source;
};

struct graft_ipc {
	const char *path; /* resolved, usually /run/... */
	bool directory;
	enum graft_class class_; /* UTILITY (sockets of daemons) or COMPUTE (MPS) */
	const char *source;
};

/* A file that graphics, WSL or others need at a fixed path (ICD JSON, driver store component). */
struct graft_extra_file {
	const char *path;   /* where it is */
	const char *target; /* where it belongs in a container; NULL = same path */
	enum graft_class class_;
	const char *source;
};

/* A device node or file of a gate (SPEC runtime-and-hook 7.10). */
struct graft_gate_node {
	enum graft_gate gate;
	struct graft_node node;
};
struct graft_gate_file {
	enum graft_gate gate;
	const char *path;   /* where it is, links resolved */
	const char *target; /* where programs look for it; NULL = same path */
	bool directory;
};

/* A display or render node of a GPU, and the link that names it by the GPU's PCI address. */
struct graft_drm_node {
	struct graft_node node;      /* /dev/dri/card1, /dev/dri/renderD129 */
	const char *by_path;         /* /dev/dri/by-path/pci-0000:1b:00.0-render; NULL = no link points to this node */
	const char *by_path_content; /* the link's target: "../renderD129" */
};

/* A file of the driver's procfs that a container gets a copy of. */
struct graft_proc_file {
	const char *path; /* /proc/driver/nvidia/params */
	uint32_t mode;
	const char *content;
	const char *source;
};

struct graft_mig_device {
	uint32_t index;            /* position in the GPU's list */
	uint32_t gi, ci;           /* GPU instance and compute instance ids */
	struct graft_fact uuid;    /* only NVML knows it */
	struct graft_fact profile; /* "1g.5gb", "1g.24gb+gfx"; only NVML knows it */
	const char *gi_caps_path;  /* /proc/driver/nvidia/capabilities/gpu0/mig/gi1 */
	const char *ci_caps_path;
	struct graft_node gi_node; /* /dev/nvidia-caps/nvidia-capN; path NULL if the driver has no such nodes */
	struct graft_node ci_node;
	const char *source;
};

struct graft_gpu {
	uint32_t index;          /* position by bus id among the GPUs that are not excluded */
	bool excluded;           /* excluded GPUs are at the end of the list, and their index is meaningless */
	const char *bus_id;      /* "00000000:1b:00.0" */
	const char *procfs_path; /* /proc/driver/nvidia/gpus/0000:1b:00.0; NULL if there is none */
	struct graft_fact uuid, model, brand, arch; /* arch is "8.0" */
	struct graft_fact addressing;               /* "ats": memory is coherent with the CPU's; "hmm"; "none" */
	struct graft_node node;                     /* /dev/nvidia<minor>; path NULL on WSL2 */
	bool mig_capable;
	bool mig_enabled;
	const char *mig_caps_path; /* /proc/driver/nvidia/capabilities/gpu<minor>; always set for native */
	struct graft_mig_device *mig_devices;
	size_t n_mig_devices;
	/* All /dev/nvidia-caps nodes that mig-minors lists for this GPU, for mig-config/monitor */
	struct graft_node *caps_nodes;
	size_t n_caps_nodes;
	struct graft_drm_node *drm_nodes; /* looked up for the GPUs that are needed: graft_host_look_at_gpus() */
	size_t n_drm_nodes;
	const char *source; /* of index, bus id and minor */
};

struct graft_imex_node {
	uint32_t channel;
	struct graft_node node;
};

/*
 * Something that was searched for and not found or not taken, and why: explains why something is
 * missing.
 */
struct graft_omission {
	const char *what;
	const char *why;
};

struct graft_inventory {
	uint32_t version; /* GRAFT_INVENTORY_VERSION */
	enum graft_platform platform;
	bool simulated;   /* the driver is Graft's simulated one */
	const char *root; /* driver root on the host, "/" */
	/*
	 * Prefixes of device nodes and of procfs paths: `root` if it has its own /dev or /proc,
	 * else "/".
	 */
	const char *dev_root, *proc_root;
	const char *ldcache;              /* cache file below the driver root */
	const char *machine;              /* uname -m */
	struct graft_fact driver_version; /* 550.54.14 */
	/*
	 * 12.4: exact from NVML, or the highest that the driver version supports (see its source)
	 */
	struct graft_fact cuda_version;
	struct graft_fact library_version; /* version in the name of the NVML library, to detect mismatches */
	const char *nvml_library;          /* resolved path of the NVML library, which is loaded if a fact needs it */
	bool caps_devices;                 /* /proc/devices has nvidia-caps: capability nodes are used (style DEV) */
	bool proc_driver_nvidia;           /* the running kernel has /proc/driver/nvidia, not just the driver root */

	struct graft_node *nodes; /* nvidiactl, nvidia-uvm, nvidia-uvm-tools, nvidia-modeset, or dxg: those found */
	size_t n_nodes;
	struct graft_gpu *gpus;
	size_t n_gpus;
	struct graft_library *libraries;
	size_t n_libraries;
	struct graft_library *libraries32;
	size_t n_libraries32;
	struct graft_binary *binaries;
	size_t n_binaries;
	/*
	 * /lib/firmware/nvidia/<version>/gsp*.bin, and in the kernel's other directories; not
	 * resolved
	 */
	const char **firmwares;
	size_t n_firmwares;
	struct graft_ipc *ipcs;
	size_t n_ipcs;
	struct graft_extra_file *extra_files;
	size_t n_extra_files;
	struct graft_proc_file *proc_files; /* params, version, registry: those found */
	size_t n_proc_files;
	struct graft_node mig_config_node, mig_monitor_node; /* path NULL if there is none */
	struct graft_imex_node *imex;                        /* channels requested (CLI) or found (info) */
	size_t n_imex;
	struct graft_gate_node *gate_nodes; /* of the requested gates: those that exist */
	size_t n_gate_nodes;
	struct graft_gate_file *gate_files;
	size_t n_gate_files;
	/* Every node of the driver that exists, for containers that manage all GPUs */
	struct graft_node *management_nodes;
	size_t n_management_nodes;
	struct graft_omission *omissions;
	size_t n_omissions;

	struct graft_arena *arena; /* owned; not part of the JSON form */
};

extern const struct graft_record graft_inventory_record;
extern const char *const graft_platform_names[4]; /* none native wsl2 tegra */

/* Sets everything of a node that stat(2) reports. */
void graft_node_describe(struct graft_node *node, const struct stat *st);
/* Returns the number of GPUs that are not excluded. */
size_t graft_inventory_count_gpus(const struct graft_inventory *inventory);

/* Frees an inventory and its arena; NULL is allowed. Returns NULL. */
struct graft_inventory *graft_inventory_free(struct graft_inventory *inventory);
/* Returns an empty inventory in its own arena, or NULL if memory is exhausted. */
struct graft_inventory *graft_inventory_new(void);
/*
 * graft_inventory_write() appends the JSON form; graft_inventory_read() reads it back, as strictly
 * as formats/record.h describes, and fails with GRAFT_UNSUPPORTED for another version. The caller
 * frees the inventory.
 */
void graft_inventory_write(const struct graft_inventory *inventory, struct graft_buffer *out);
int graft_inventory_read(const char *json, size_t length, struct graft_inventory **ret_inventory,
			 struct graft_error *err);

#endif
