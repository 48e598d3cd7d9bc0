/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover: reads the host. Never writes, never opens a /dev/nvidia* node, never loads driver code into this process.
 *
 * Only what `needs` names is looked up. Facts that procfs lacks are left unknown; graft_host_complete() asks NVML for
 * them, in one child without privileges, and only if the caller finds out that it really needs them.
 */
#ifndef GRAFT_HOST_DISCOVER_H
#define GRAFT_HOST_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"
#include "host/inventory.h"

enum graft_need {
	GRAFT_NEED_NODES = 1u << 0, /* driver-level device nodes */
	GRAFT_NEED_GPUS = 1u << 1,  /* GPUs with bus id, minor, UUID, model as procfs has them */
	GRAFT_NEED_MIG = 1u << 2,   /* MIG devices and capability nodes, of every GPU */
	GRAFT_NEED_LIBRARIES = 1u << 3,
	GRAFT_NEED_LIBRARIES32 = 1u << 4,
	GRAFT_NEED_BINARIES = 1u << 5,
	GRAFT_NEED_FIRMWARE = 1u << 6,
	GRAFT_NEED_IPCS = 1u << 7,
	GRAFT_NEED_PROC_FILES = 1u << 8, /* contents for the container's procfs view */
	GRAFT_NEED_EXTRA_FILES = 1u << 9,
	GRAFT_NEED_IMEX = 1u << 10, /* all channel nodes that exist; those in options are always looked at */
	GRAFT_NEED_MIG_CAPS =
	    1u << 11, /* gpu.caps_nodes, mig_config_node, mig_monitor_node: for mig-config and mig-monitor */
	GRAFT_NEED_DRM = 1u << 12, /* gpu.drm_nodes of every GPU; of some: graft_host_look_at_gpus() */
	/* What containers get beyond what nvidia-container-cli lists: EGL platforms, modules of the X server, firmware in all places, programs of IMEX. */
	GRAFT_NEED_FURTHER = 1u << 13,
	GRAFT_NEED_EVERY_LIBRARY =
	    1u << 14,                     /* of the driver's version, known or not; and which have development links */
	GRAFT_NEED_EXPLICIT = 1u << 15,   /* libraries that belong to an image as a rule: libGL.so, libOpenCL.so ... */
	GRAFT_NEED_MANAGEMENT = 1u << 16, /* management_nodes */
	GRAFT_NEED_ALL = (1u << 15) - 1u, /* all but the last two */
};

/* Facts that only NVML has, for graft_host_complete(). */
enum graft_nvml_fact {
	GRAFT_NVML_UUID = 1u << 0,
	GRAFT_NVML_MODEL = 1u << 1,
	GRAFT_NVML_BRAND = 1u << 2,
	GRAFT_NVML_ARCH = 1u << 3,
	GRAFT_NVML_CUDA = 1u << 4,
	GRAFT_NVML_MIG = 1u << 5, /* MIG mode and MIG UUIDs */
	GRAFT_NVML_ADDRESSING = 1u << 6,
};

struct graft_host_options {
	const char *root;      /* driver root, absolute; NULL = "/" */
	const char *host_root; /* has the /proc, /sys and /dev that the driver root lacks; NULL = "/" */
	const char *dev_root;  /* has the device nodes; NULL = the driver root if it has some, else the host */
	const char *ldcache;   /* below it; NULL = "/etc/ld.so.cache" */
	uid_t nvml_uid;        /* identity of the NVML child; (uid_t)-1 = the kernel's overflow ids */
	gid_t nvml_gid;
	const char *path;               /* $PATH for binaries (caller's, from secure_getenv); NULL = a standard list */
	const char *mps_pipe_directory; /* NULL = /tmp/nvidia-mps */
	unsigned int
	    capabilities; /* look up only library and binary classes that these bring along; GRAFT_CAP_ALL for all */
	const uint32_t *imex_channels; /* borrowed */
	size_t n_imex_channels;
	uint32_t gates;      /* bits 1 << GRAFT_GATE_*: look up what they bring along */
	bool without_driver; /* what is looked up may be there without a working driver, whose state is then no error */
	/* Below the driver root; borrowed. Libraries are looked for there and nowhere else; n 0: where the loader and the driver say. */
	const char *const *library_directories;
	size_t n_library_directories;
	/* Likewise for the files that programs expect at fixed places (extra files): n 0 = /etc, /usr/share and their like. */
	const char *const *data_directories;
	size_t n_data_directories;
	bool no_glvnd, no_uvm, no_modeset, no_mps, no_persistenced, no_fabricmanager, no_gsp_firmware;
	int nvml_timeout_ms; /* 0 = no limit: progress goes to the log every second */
	const struct graft_log *log;
};

/*
 * Discovers. Texts of the states that NVML used to report (SPEC 2.3): library missing = GRAFT_NO_LIBRARY "load library failed:
 * libnvidia-ml.so.1: cannot open shared object file: no such file or directory"; module absent = GRAFT_NO_DRIVER "nvml error: driver not
 * loaded"; versions differ = GRAFT_MISMATCH "nvml error: driver/library version mismatch" (context names both); nodes not accessible to
 * the caller = GRAFT_PERMISSION "nvml error: insufficient permissions". A missing optional file is an omission, never a failure.
 */
int graft_host_discover(const struct graft_host_options *options, unsigned int needs,
			struct graft_inventory **ret_inventory, struct graft_error *err);

/*
 * The facts by which a host is told from what it was before: platform, version of the driver, GPUs and MIG devices, as procfs has them. No library is looked
 * for and NVML is not asked; a driver that is not loaded has neither version nor GPUs, which is no failure. GPUs are listed on native hosts alone. `assumed`: PCI addresses,
 * "00000000:1b:00.0", of GPUs of which nothing but their place is asked: no file of theirs is read. -1: GRAFT_NO_MEMORY, and where the roots cannot be opened.
 */
int graft_host_identify(const struct graft_host_options *options, const char *const *assumed, size_t n_assumed,
			struct graft_inventory **ret_inventory, struct graft_error *err);

/* Looks up the DRM nodes of the GPUs at these places of the inventory's list. The GPUs stay where they are in memory. */
int graft_host_look_at_gpus(const struct graft_host_options *options, struct graft_inventory *inventory,
			    const size_t *places, size_t n_places, struct graft_error *err);

/* Asks NVML for `facts` (all GPUs in one go) and fills what is unknown. Facts that procfs gave are kept; contradictions are logged. */
int graft_host_complete(const struct graft_host_options *options, struct graft_inventory *inventory, unsigned int facts,
			struct graft_error *err);

/* The highest CUDA version that a driver version supports, "12.4" for 550.x; NULL when the table does not know it. Pure. */
const char *graft_cuda_version_bound(const char *driver_version);

#endif
