/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog: what a driver consists of, as tables. Every row says why it is there; what is known and left out on
 * purpose is a table of its own, with reasons. SPEC libnvidia-container 6.2-6.8, 6.10.
 *
 * A row's `disabled_by` is the offset of the bool in struct graft_host_options that takes it out; 0 = always there.
 */
#ifndef GRAFT_HOST_CATALOG_H
#define GRAFT_HOST_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/capability.h"
#include "host/discover.h"

/* A library by the prefix of its soname ("libcuda.so"). The order is that of lookup and of every listing. */
struct graft_catalog_library {
	const char *prefix;
	enum graft_class class_;
	bool tls_note;            /* taken only with an ABI note that says 2.3.99 */
	const char *subdirectory; /* where it may also lie, below a library directory; NULL = nowhere else */
	const char *why;
};
extern const struct graft_catalog_library graft_catalog_libraries[];
extern const size_t graft_n_catalog_libraries;
/* The row of the NVML library, the one that must be there. */
#define GRAFT_CATALOG_NVML "libnvidia-ml.so"

/* Libraries that the existing command line does not list: looked up only when `needs` is asked for. */
struct graft_catalog_further_library {
	struct graft_catalog_library row;
	unsigned int needs; /* a bit of enum graft_need */
	bool any_version;   /* it has a version of its own, not the driver's */
};
extern const struct graft_catalog_further_library graft_catalog_further_libraries[];
extern const size_t graft_n_catalog_further_libraries;

struct graft_catalog_binary {
	const char *name;
	enum graft_class class_;
	unsigned int capabilities; /* any of them brings it along (SPEC 2.4: not all that bring its class) */
	unsigned int needs;        /* a bit of enum graft_need that must be asked for; 0 = none */
	size_t disabled_by;
	const char *why;
};
extern const struct graft_catalog_binary graft_catalog_binaries[];
extern const size_t graft_n_catalog_binaries;

/* A device node of the driver as a whole. */
struct graft_catalog_node {
	const char *path;
	const char *devices_name; /* its name in /proc/devices; NULL = the number is fixed: major below */
	uint32_t major, minor;
	bool assumed; /* listed even when it is not there: its number is fixed */
	size_t disabled_by;
	const char *why;
};
extern const struct graft_catalog_node graft_catalog_nodes[];
extern const size_t graft_n_catalog_nodes;

struct graft_catalog_ipc {
	const char *path; /* NULL: options->mps_pipe_directory */
	enum graft_class class_;
	size_t disabled_by;
	const char *why;
};
extern const struct graft_catalog_ipc graft_catalog_ipcs[];
extern const size_t graft_n_catalog_ipcs;

/* A file that programs look for below a configuration or data directory. */
struct graft_catalog_extra {
	const char *name; /* below one of graft_catalog_data_directories */
	const char
	    *target; /* directory that the name is put below in a container; NULL = the directory it was found in */
	enum graft_class class_;
	unsigned int needs; /* a bit of enum graft_need that must be asked for; 0 = none */
	const char *why;
};
extern const struct graft_catalog_extra graft_catalog_extras[];
extern const size_t graft_n_catalog_extras;

/* Device nodes and files of a gate. `name`: of a node in the directory, or what its name begins with. */
struct graft_catalog_gate_node {
	enum graft_gate gate;
	const char *directory, *name;
	bool prefix;
	const char *why;
};
extern const struct graft_catalog_gate_node graft_catalog_gate_nodes[];
extern const size_t graft_n_catalog_gate_nodes;
struct graft_catalog_gate_file {
	enum graft_gate gate;
	const char *path;
	bool directory;
	const char *why;
};
extern const struct graft_catalog_gate_file graft_catalog_gate_files[];
extern const size_t graft_n_catalog_gate_files;

/* Nodes of the driver for those who look after all GPUs: what the names in a directory begin with. The first row that fits counts. */
struct graft_catalog_management_node {
	const char *directory, *name;
	bool left_out;
	const char *why;
};
extern const struct graft_catalog_management_node graft_catalog_management_nodes[];
extern const size_t graft_n_catalog_management_nodes;

/* Modules of the X server: `version`: the driver's version follows the name. */
struct graft_catalog_module {
	const char *name;
	bool version;
	const char *why;
};
extern const struct graft_catalog_module graft_catalog_xorg_modules[];
extern const size_t graft_n_catalog_xorg_modules;
/* Where they may be: below a library directory, and at fixed places. */
extern const char *const graft_catalog_xorg_below[];
extern const size_t graft_n_catalog_xorg_below;
extern const char *const graft_catalog_xorg_directories[];
extern const size_t graft_n_catalog_xorg_directories;

/* A place to look in. `bits`: 64, 32, or 0 for either. */
struct graft_catalog_directory {
	const char *path;
	unsigned int bits;
	const char *why;
	const char
	    *target; /* data directories: where what is found here belongs in a container; NULL = at the same place */
};
extern const struct graft_catalog_directory graft_catalog_library_directories[];
extern const size_t graft_n_catalog_library_directories;
extern const struct graft_catalog_directory graft_catalog_data_directories[];
extern const size_t graft_n_catalog_data_directories;
extern const struct graft_catalog_directory graft_catalog_binary_directories[];
extern const size_t graft_n_catalog_binary_directories;

/* Known and left out on purpose. `name` is a prefix for libraries (it ends with ".so") and a whole name otherwise. */
struct graft_catalog_refusal {
	const char *name;
	const char *why;
};
extern const struct graft_catalog_refusal graft_catalog_refusals[];
extern const size_t graft_n_catalog_refusals;

/* WSL2: what a directory of the Windows driver store holds when it belongs to a usable GPU. */
struct graft_catalog_component {
	const char *name;
	const char *why;
};
extern const struct graft_catalog_component graft_catalog_wsl_components[];
extern const size_t graft_n_catalog_wsl_components;

/* Tegra: device nodes of the integrated GPU, by prefix of the path below /dev. */
extern const struct graft_catalog_component graft_catalog_tegra_nodes[];
extern const size_t graft_n_catalog_tegra_nodes;

/* Driver branch ("550") and the highest CUDA version that its libcuda implements. */
struct graft_catalog_branch {
	unsigned int branch;
	const char *cuda;
};
extern const struct graft_catalog_branch graft_catalog_branches[];
extern const size_t graft_n_catalog_branches;

#endif
