/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog: tables of a driver's files: libraries with their sonames and the driver versions that
 * contain them, programs, firmware.
 */
#ifndef GRAFT_SIM_CATALOG_H
#define GRAFT_SIM_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "topology.h"

enum sim_template { SIM_TEMPLATE_NONE, SIM_TEMPLATE_NVML, SIM_TEMPLATE_CUDA, SIM_TEMPLATE_GLX, SIM_TEMPLATE_EGL };

struct sim_library {
	const char *stem;          /* "libcuda": the file is libcuda.so.<version> */
	const char *soname;        /* "1": libcuda.so.1; NULL: the soname is the file's name */
	unsigned int files;        /* bits of enum sim_files: installed if any of them is */
	unsigned int since, until; /* major driver versions that contain it; until 0: all later ones */
	bool has_32_bit;
	bool has_link;          /* with a development link libcuda.so */
	const char *directory;  /* below the library directory; NULL: the library directory */
	enum sim_template real; /* the template used on the build machine's own 64-bit ABI */
	const char *needed;     /* stem of a library of the same version that it links to, or NULL */
	const char *version;    /* the library's own version; NULL: the driver's */
};
extern const struct sim_library sim_libraries[];
extern const size_t sim_n_libraries;

/* Returns whether a topology's driver contains the library. */
bool sim_library_wanted(const struct sim_library *library, const struct sim_topology *topology);

enum sim_program { SIM_PROGRAM_SMI, SIM_PROGRAM_DAEMON };
struct sim_binary {
	const char *name;
	enum sim_program program;
	bool fabric;   /* only on hosts with NVSwitches */
	bool imex;     /* only on hosts with IMEX channels */
	bool graphics; /* only with the driver's files for graphics */
};
extern const struct sim_binary sim_binaries[];
extern const size_t sim_n_binaries;
/* Returns whether a topology's driver contains the program. */
bool sim_binary_wanted(const struct sim_binary *binary, const struct sim_topology *topology);

struct sim_firmware {
	const char *name;
	unsigned int since; /* major driver version */
};
extern const struct sim_firmware sim_firmwares[];
extern const size_t sim_n_firmwares;
/* Returns whether a topology's driver contains the firmware. */
bool sim_firmware_wanted(const struct sim_firmware *firmware, const struct sim_topology *topology);

#endif
