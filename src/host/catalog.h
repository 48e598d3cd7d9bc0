/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog: what a driver consists of, as tables. Every row gives the reason why it is there; known
 * files that are deliberately left out have a table of their own, with reasons. SPEC
 * libnvidia-container 6.2 to 6.8, 6.10.
 *
 * `disabled_by` in a row is the offset of the bool in struct graft_host_options that disables the
 * row; 0 if no member does.
 */
#ifndef GRAFT_HOST_CATALOG_H
#define GRAFT_HOST_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/capability.h"
#include "host/discover.h"

/*
 * A library, by the prefix of its soname ("libcuda.so"). The order of the rows is the order of
 * lookup and of every listing.
 */
struct graft_catalog_library {
	const char *prefix;
	enum graft_class class_;
	bool tls_note;            /* taken only if its ABI note specifies kernel 2.3.99 */
	const char *subdirectory; /* another place to look, below a library directory; NULL = none */
	const char *why;
};
extern const struct graft_catalog_library graft_catalog_libraries[];
extern const size_t graft_n_catalog_libraries;
/* The row of the NVML library, which every driver must have. */
#define GRAFT_CATALOG_NVML "libnvidia-ml.so"

/*
 * Libraries that the existing command line does not list; looked up only if `needs` is requested.
 */
struct graft_catalog_further_library {
	struct graft_catalog_library row;
	unsigned int needs; /* a bit of enum graft_need */
	bool any_version;   /* has its own version rather than the driver's */
};
extern const struct graft_catalog_further_library graft_catalog_further_libraries[];
extern const size_t graft_n_catalog_further_libraries;

struct graft_catalog_binary {
	const char *name;
	enum graft_class class_;
	/*
	 * Any one of these selects it. They may be fewer than those that select its class (SPEC
	 * libnvidia-container 2.4).
	 */
	unsigned int capabilities;
	unsigned int needs; /* bits of enum graft_need that must be requested; 0 = none */
	size_t disabled_by;
	const char *why;
};
extern const struct graft_catalog_binary graft_catalog_binaries[];
extern const size_t graft_n_catalog_binaries;

/* Files of firmware: `prefix`*.bin. */
struct graft_catalog_firmware {
	const char *prefix;
	unsigned int needs; /* bits of enum graft_need that must be requested; 0 = none */
	const char *why;
};
extern const struct graft_catalog_firmware graft_catalog_firmwares[];
extern const size_t graft_n_catalog_firmwares;
#define GRAFT_CATALOG_FIRMWARE_SUFFIX ".bin"

/* A device node that belongs to the driver as a whole. */
struct graft_catalog_node {
	const char *path;
	const char *devices_name; /* name in /proc/devices; NULL = fixed numbers, given below */
	uint32_t major, minor;
	bool assumed; /* listed even if absent, because its numbers are fixed */
	size_t disabled_by;
	const char *why;
};
extern const struct graft_catalog_node graft_catalog_nodes[];
extern const size_t graft_n_catalog_nodes;

struct graft_catalog_ipc {
	const char *path; /* NULL = options->mps_pipe_directory */
	enum graft_class class_;
	size_t disabled_by;
	const char *why;
};
extern const struct graft_catalog_ipc graft_catalog_ipcs[];
extern const size_t graft_n_catalog_ipcs;

/* A file that programs look for below a configuration or data directory. */
struct graft_catalog_extra {
	const char *name;   /* below one of graft_catalog_data_directories */
	const char *target; /* directory for it in a container; NULL = the directory where it was found */
	enum graft_class class_;
	unsigned int needs; /* bits of enum graft_need that must be requested; 0 = none */
	const char *why;
};
extern const struct graft_catalog_extra graft_catalog_extras[];
extern const size_t graft_n_catalog_extras;

/*
 * Device nodes and files of a gate. `name` is the name of a node in the directory or, with
 * `prefix`, the beginning of one.
 */
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

/*
 * Nodes of the driver for containers that manage all GPUs. `name` is a prefix of the names in
 * `directory`. The first matching row applies.
 */
struct graft_catalog_management_node {
	const char *directory, *name;
	bool left_out;
	const char *why;
};
extern const struct graft_catalog_management_node graft_catalog_management_nodes[];
extern const size_t graft_n_catalog_management_nodes;

/* A module of the X server. `version`: the driver's version is appended to the name. */
struct graft_catalog_module {
	const char *name;
	bool version;
	const char *why;
};
extern const struct graft_catalog_module graft_catalog_xorg_modules[];
extern const size_t graft_n_catalog_xorg_modules;
/* Where modules may be: below a library directory, and in fixed directories. */
extern const char *const graft_catalog_xorg_below[];
extern const size_t graft_n_catalog_xorg_below;
extern const char *const graft_catalog_xorg_directories[];
extern const size_t graft_n_catalog_xorg_directories;

/* A directory to search. `bits` is 64, 32, or 0 for either. */
struct graft_catalog_directory {
	const char *path;
	unsigned int bits;
	const char *why;
	const char *target; /* data directories only: where its files belong in a container; NULL = at the same path */
};
extern const struct graft_catalog_directory graft_catalog_library_directories[];
extern const size_t graft_n_catalog_library_directories;
extern const struct graft_catalog_directory graft_catalog_data_directories[];
extern const size_t graft_n_catalog_data_directories;
extern const struct graft_catalog_directory graft_catalog_binary_directories[];
extern const size_t graft_n_catalog_binary_directories;
/*
 * Returns the directories of programs, separated by colons as in PATH, in the arena; NULL if out of
 * memory.
 */
const char *graft_catalog_binary_path(struct graft_arena *arena);

/*
 * A file that is known and deliberately left out. `name` is a prefix for libraries (it ends in
 * ".so") and a whole name otherwise.
 */
struct graft_catalog_refusal {
	const char *name;
	const char *why;
};
extern const struct graft_catalog_refusal graft_catalog_refusals[];
extern const size_t graft_n_catalog_refusals;

/* WSL2: what a directory of the Windows driver store contains if it belongs to a usable GPU. */
struct graft_catalog_component {
	const char *name;
	const char *why;
};
extern const struct graft_catalog_component graft_catalog_wsl_components[];
extern const size_t graft_n_catalog_wsl_components;

/* Tegra: device nodes of the integrated GPU, by prefix of the path below /dev. */
extern const struct graft_catalog_component graft_catalog_tegra_nodes[];
extern const size_t graft_n_catalog_tegra_nodes;

/* A driver branch ("550") and the highest CUDA version that its libcuda implements. */
struct graft_catalog_branch {
	unsigned int branch;
	char cuda[8]; /* an array, not a pointer: that takes a quarter of the space in a program */
};
extern const struct graft_catalog_branch graft_catalog_branches[];
extern const size_t graft_n_catalog_branches;

#endif
