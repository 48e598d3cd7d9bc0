/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory: what this host has, and where each fact was read. Plain data with a JSON form (docs/FORMATS.md).
 *
 * Invariants: paths are absolute and relative to the driver root (`root`, whose prefix they do not carry), links
 * resolved unless said otherwise; lists are in the order in which the existing stack lists them; an empty string never
 * stands for "unknown": that is NULL. All memory belongs to the arena.
 */
#ifndef GRAFT_HOST_INVENTORY_H
#define GRAFT_HOST_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "formats/record.h"
#include "host/capability.h"

#define GRAFT_INVENTORY_VERSION 1u

enum graft_platform { GRAFT_PLATFORM_NONE, GRAFT_PLATFORM_NATIVE, GRAFT_PLATFORM_WSL2, GRAFT_PLATFORM_TEGRA };

/* A text fact with its source ("/proc/driver/nvidia/version", "nvml", "bounded from driver version"). */
struct graft_fact {
	const char *value;  /* NULL: not known */
	const char *source; /* NULL with value NULL */
};

/* A character device. */
struct graft_node {
	const char *path;      /* "/dev/nvidia0" */
	uint32_t major, minor; /* as it is, or as it must be when the node is not there */
	bool present;          /* a character device with these numbers is at `path` below the driver root */
	uint32_t mode;         /* permission bits; 0 when absent */
	uint32_t uid, gid;
	const char *source;
};

struct graft_library {
	const char *path;   /* resolved: /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14 */
	const char *soname; /* libcuda.so.1 */
	uint32_t abi_flags; /* ld.so.cache flags */
	enum graft_class class_;
	const char *source; /* "/etc/ld.so.cache", ".../sandboxutils-filelist.json", "directory scan" */
	bool
	    development_link; /* a link libcuda.so that programs are linked with lies beside it (GRAFT_NEED_EVERY_LIBRARY only) */
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

/* A file that graphics, WSL or others need at a fixed place (ICD JSON, driver store component). */
struct graft_extra_file {
	const char *path;   /* where it is */
	const char *target; /* where it belongs in a container; NULL = same path */
	enum graft_class class_;
	const char *source;
};

/* Something that a gate brings along (SPEC runtime-and-hook 7.10). */
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
	const char *by_path;         /* /dev/dri/by-path/pci-0000:1b:00.0-render; NULL = no link leads to this node */
	const char *by_path_content; /* what that link says: "../renderD129" */
};

/* A file of the driver's procfs whose content a container gets a copy of. */
struct graft_proc_file {
	const char *path; /* /proc/driver/nvidia/params */
	uint32_t mode;
	const char *content;
	const char *source;
};

struct graft_mig_device {
	uint32_t index;            /* its place in the GPU's list */
	uint32_t gi, ci;           /* GPU instance and compute instance ids */
	struct graft_fact uuid;    /* only NVML knows it */
	struct graft_fact profile; /* "1g.5gb", "1g.24gb+gfx"; only NVML knows it */
	const char *gi_caps_path;  /* /proc/driver/nvidia/capabilities/gpu0/mig/gi1 */
	const char *ci_caps_path;
	struct graft_node gi_node; /* /dev/nvidia-caps/nvidia-capN; path NULL when the driver has no such nodes */
	struct graft_node ci_node;
	const char *source;
};

struct graft_gpu {
	uint32_t index;          /* place by bus id among the GPUs that are not excluded */
	bool excluded;           /* excluded GPUs stand at the end of the list, index 0 has no meaning then */
	const char *bus_id;      /* "00000000:1b:00.0" */
	const char *procfs_path; /* /proc/driver/nvidia/gpus/0000:1b:00.0; NULL when there is none */
	struct graft_fact uuid, model, brand, arch; /* arch is "8.0" */
	struct graft_fact addressing;               /* "ats": memory is coherent with the CPU's; "hmm"; "none" */
	struct graft_node node;                     /* /dev/nvidia<minor>; path NULL on WSL2 */
	bool mig_capable;
	bool mig_enabled;
	const char *mig_caps_path; /* /proc/driver/nvidia/capabilities/gpu<minor>; always set for native */
	struct graft_mig_device *mig_devices;
	size_t n_mig_devices;
	struct graft_node
	    *caps_nodes; /* all /dev/nvidia-caps nodes that mig-minors lists for this GPU, for mig-config/monitor */
	size_t n_caps_nodes;
	struct graft_drm_node *drm_nodes; /* looked up for the GPUs that somebody wants: graft_host_look_at_gpus() */
	size_t n_drm_nodes;
	const char *source; /* of index, bus id and minor */
};

struct graft_imex_node {
	uint32_t channel;
	struct graft_node node;
};

/* Something looked for and not found or not taken, and why: the answer to "why is this missing". */
struct graft_omission {
	const char *what;
	const char *why;
};

struct graft_inventory {
	uint32_t version; /* GRAFT_INVENTORY_VERSION */
	enum graft_platform platform;
	bool simulated;   /* the driver says that it is Graft's simulated one */
	const char *root; /* driver root on the host, "/" */
	/* What stands in front of device nodes and of procfs paths: `root` when it has a /dev or /proc of its own, else "/". */
	const char *dev_root, *proc_root;
	const char *ldcache;              /* cache file below it */
	const char *machine;              /* uname -m */
	struct graft_fact driver_version; /* 550.54.14 */
	struct graft_fact
	    cuda_version; /* 12.4: exact from NVML, or the highest the driver version supports (source says so) */
	struct graft_fact library_version; /* version in the name of the NVML library, for mismatches */
	const char *nvml_library;          /* resolved path of the NVML library: what is loaded when a fact needs it */
	bool caps_devices;                 /* /proc/devices has nvidia-caps: capability nodes are used (style DEV) */
	bool proc_driver_nvidia; /* the running kernel has /proc/driver/nvidia (as opposed to the driver root only) */

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
	const char *
	    *firmwares; /* /lib/firmware/nvidia/<version>/gsp*.bin, and in the kernel's other places; not resolved */
	size_t n_firmwares;
	struct graft_ipc *ipcs;
	size_t n_ipcs;
	struct graft_extra_file *extra_files;
	size_t n_extra_files;
	struct graft_proc_file *proc_files; /* params, version, registry: those found */
	size_t n_proc_files;
	struct graft_node mig_config_node, mig_monitor_node; /* path NULL when there is none */
	struct graft_imex_node *imex;                        /* channels asked for (CLI) or found (info) */
	size_t n_imex;
	struct graft_gate_node *gate_nodes; /* of the gates asked for: those that are there */
	size_t n_gate_nodes;
	struct graft_gate_file *gate_files;
	size_t n_gate_files;
	struct graft_node *management_nodes; /* every node of the driver that is there, for who looks after all GPUs */
	size_t n_management_nodes;
	struct graft_omission *omissions;
	size_t n_omissions;

	struct graft_arena *arena; /* owned; not part of the JSON form */
};

extern const struct graft_record graft_inventory_record;
extern const char *const graft_platform_names[4]; /* none native wsl2 tegra */

/* NULL is fine. Returns NULL. */
struct graft_inventory *graft_inventory_free(struct graft_inventory *inventory);
/* An empty inventory in its own arena, or NULL. */
struct graft_inventory *graft_inventory_new(void);
/* JSON text appended / read back; see formats/record.h for strictness. Another version is GRAFT_UNSUPPORTED. */
void graft_inventory_write(const struct graft_inventory *inventory, struct graft_buffer *out);
int graft_inventory_read(const char *json, size_t length, struct graft_inventory **ret_inventory,
			 struct graft_error *err);

#endif
