/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover: reads the host. It never writes, never opens a /dev/nvidia* node, and never loads
 * driver code into this process. Only what `needs` names is looked up. Facts that procfs lacks are
 * left unknown; graft_host_complete() asks NVML for them, in one child without privileges, if the
 * caller finds that it really needs them.
 */
#ifndef GRAFT_HOST_DISCOVER_H
#define GRAFT_HOST_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "host/inventory.h"

#define GRAFT_SIMULATED_MARK "(Graft simulated driver)" /* in /proc/driver/nvidia/version */

enum graft_need {
	GRAFT_NEED_NODES = 1u << 0, /* driver-level device nodes */
	GRAFT_NEED_GPUS = 1u << 1,  /* GPUs with bus id, minor, UUID and model as procfs has them */
	GRAFT_NEED_MIG = 1u << 2,   /* MIG devices and capability nodes of every GPU */
	GRAFT_NEED_LIBRARIES = 1u << 3,
	GRAFT_NEED_LIBRARIES32 = 1u << 4,
	GRAFT_NEED_BINARIES = 1u << 5,
	GRAFT_NEED_FIRMWARE = 1u << 6,
	GRAFT_NEED_IPCS = 1u << 7,
	GRAFT_NEED_PROC_FILES = 1u << 8, /* contents of files for the container's procfs view */
	GRAFT_NEED_EXTRA_FILES = 1u << 9,
	GRAFT_NEED_IMEX = 1u << 10, /* all channel nodes that exist; those in the options are always looked up */
	/* gpu.caps_nodes, mig_config_node, mig_monitor_node: for mig-config and mig-monitor */
	GRAFT_NEED_MIG_CAPS = 1u << 11,
	GRAFT_NEED_DRM = 1u << 12, /* gpu.drm_nodes of every GPU; for some GPUs use graft_host_look_at_gpus() */
	/*
	 * What containers get beyond the list of nvidia-container-cli: EGL platforms, modules of
	 * the X server, firmware in all directories, programs of IMEX.
	 */
	GRAFT_NEED_FURTHER = 1u << 13,
	/* All libraries of the driver's version, known or not; also finds development links */
	GRAFT_NEED_EVERY_LIBRARY = 1u << 14,
	GRAFT_NEED_EXPLICIT = 1u << 15,   /* libraries that normally belong to an image: libGL.so, libOpenCL.so, ... */
	GRAFT_NEED_MANAGEMENT = 1u << 16, /* management_nodes */
	GRAFT_NEED_ALL = (1u << 15) - 1u, /* all but the last two */
};

/* Facts that only NVML knows, for graft_host_complete(). */
enum graft_nvml_fact {
	GRAFT_NVML_UUID = 1u << 0,
	GRAFT_NVML_MODEL = 1u << 1,
	GRAFT_NVML_BRAND = 1u << 2,
	GRAFT_NVML_ARCH = 1u << 3,
	GRAFT_NVML_CUDA = 1u << 4,
	GRAFT_NVML_MIG = 1u << 5, /* MIG mode and MIG UUIDs */
	GRAFT_NVML_ADDRESSING = 1u << 6,
	GRAFT_NVML_SIZE = 1u << 7,   /* memory, and with GRAFT_NVML_MIG what each MIG device has */
	GRAFT_NVML_FABRIC = 1u << 8, /* the NVLink domain and clique that GPUs belong to */
	GRAFT_NVML_LINKS = 1u << 9,  /* the NVLinks of each GPU, and what is at their other ends */
};
#define GRAFT_NVML_EVERYTHING ((1u << 10) - 1u)

struct graft_host_options {
	const char *root;      /* driver root, absolute; NULL = "/" */
	const char *host_root; /* has the /proc, /sys and /dev that the driver root lacks; NULL = "/" */
	const char *dev_root;  /* has the device nodes; NULL = the driver root if it has any, else the host */
	const char *ldcache;   /* below the driver root; NULL = "/etc/ld.so.cache" */
	uid_t nvml_uid;        /* identity of the NVML child; (uid_t)-1 = the kernel's overflow ids */
	gid_t nvml_gid;
	/*
	 * Caller's $PATH for programs, from secure_getenv(); NULL = the standard directories only
	 */
	const char *path;
	const char *mps_pipe_directory; /* NULL = /tmp/nvidia-mps */
	/* Look up only classes of libraries and programs that these select; GRAFT_CAP_ALL = all */
	unsigned int capabilities;
	const uint32_t *imex_channels; /* borrowed */
	size_t n_imex_channels;
	uint32_t gates;      /* bits 1 << GRAFT_GATE_*: look up what belongs to these gates */
	bool without_driver; /* tolerate a driver that is absent or does not work */
	bool without_nvml;   /* tolerate a driver without the file of NVML */
	/*
	 * Search for libraries only here. Below the driver root, borrowed. n 0 = where the loader
	 * and the driver have them.
	 */
	const char *const *library_directories;
	size_t n_library_directories;
	/*
	 * Likewise for files that programs expect at fixed places (extra files). n 0 = /etc,
	 * /usr/share and the like.
	 */
	const char *const *data_directories;
	size_t n_data_directories;
	bool no_glvnd, no_uvm, no_modeset, no_mps, no_persistenced, no_fabricmanager, no_gsp_firmware;
	int nvml_timeout_ms; /* 0 = no limit; progress goes to the log every second */
	const struct graft_log *log;
};

/*
 * Discovers the host. A driver that does not work is an error, with the message that NVML would
 * give (SPEC libnvidia-container 2.3):
 *
 * - library missing: GRAFT_NO_LIBRARY "load library failed: libnvidia-ml.so.1: cannot open shared
 *   object file: no such file or directory"
 * - module not loaded: GRAFT_NO_DRIVER "nvml error: driver not loaded"
 * - versions differ: GRAFT_MISMATCH "nvml error: driver/library version mismatch", with both
 *   versions in the context
 * - nodes not accessible to the caller: GRAFT_PERMISSION "nvml error: insufficient permissions"
 *
 * A missing optional file is an omission, never an error.
 */
int graft_host_discover(const struct graft_host_options *options, unsigned int needs,
			struct graft_inventory **ret_inventory, struct graft_error *err);

/*
 * Reads the facts that identify the state of a host: platform, driver version, GPUs and MIG
 * devices, as procfs has them. It neither looks for libraries nor asks NVML. A driver that is not
 * loaded has no version and no GPUs, which is not an error. GPUs are listed only on native hosts.
 * `assumed` are PCI addresses ("00000000:1b:00.0") of GPUs of which only the presence matters: none
 * of their files is read. Returns -1 with GRAFT_NO_MEMORY, or if a root cannot be opened.
 */
int graft_host_identify(const struct graft_host_options *options, const char *const *assumed, size_t n_assumed,
			struct graft_inventory **ret_inventory, struct graft_error *err);

/*
 * Looks up the DRM nodes of the GPUs at these indices of the inventory's list. The GPUs do not move
 * in memory.
 */
int graft_host_look_at_gpus(const struct graft_host_options *options, struct graft_inventory *inventory,
			    const size_t *places, size_t n_places, struct graft_error *err);

/*
 * Asks NVML for `facts`, for all GPUs at once, and fills in what is unknown. Facts from procfs are
 * kept; contradictions are logged.
 */
int graft_host_complete(const struct graft_host_options *options, struct graft_inventory *inventory, unsigned int facts,
			struct graft_error *err);

/*
 * The highest CUDA version that a driver version supports: "12.4" for 550.x; NULL if the table does
 * not have the branch. Pure.
 */
const char *graft_cuda_version_bound(const char *driver_version);

/*
 * The id that the kernel shows for a user or group that cannot be mapped. NVML's child runs under
 * it if root asks and no other id was given. `path`: one of the two files below.
 */
#define GRAFT_OVERFLOW_UID "/proc/sys/kernel/overflowuid"
#define GRAFT_OVERFLOW_GID "/proc/sys/kernel/overflowgid"
uint32_t graft_host_overflow_id(const char *path);

/*
 * Reads the kernel's boot id ("d2f1...") below a root that has the kernel's procfs. *ret_id is
 * allocated in the arena; it is NULL if the kernel provides no boot id or one in another format.
 * Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_host_boot_id(const struct graft_root *root, struct graft_arena *arena, const char **ret_id,
		       struct graft_error *err);

#define GRAFT_PARAMS_PATH "/proc/driver/nvidia/params"

/*
 * Reads the host's file. *ret_text is its text with the line that makes the driver create no device
 * nodes, in the arena; NULL if there is no such file or it already has that setting. Returns -1 if
 * it cannot be read, or with GRAFT_NO_MEMORY.
 */
int graft_params_for_container(struct graft_arena *arena, const char **ret_text, struct graft_error *err);

#endif
