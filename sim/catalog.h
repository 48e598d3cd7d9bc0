/* SPDX-License-Identifier: Apache-2.0 */
/* catalog: the files of a driver as facts: libraries with their sonames and the versions that have them, programs, firmware. */
#ifndef GRAFT_SIM_CATALOG_H
#define GRAFT_SIM_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "topology.h"

enum sim_template { SIM_TEMPLATE_NONE, SIM_TEMPLATE_NVML, SIM_TEMPLATE_CUDA, SIM_TEMPLATE_GLX, SIM_TEMPLATE_EGL };

struct sim_library {
	const char *stem;          /* "libcuda": the file is libcuda.so.<version> */
	const char *soname;        /* "1": libcuda.so.1; NULL: the soname is the file's name */
	unsigned int files;        /* enum sim_files: installed with any of them */
	unsigned int since, until; /* major versions of the driver that have it; until 0 = still there */
	bool has_32_bit;
	bool has_link;          /* a development link libcuda.so */
	const char *directory;  /* below the library directory; NULL = itself */
	enum sim_template real; /* what the file does on the machine's own 64-bit ABI */
	const char *needed;     /* stem of a library of the same version that it is linked to, or NULL */
	const char *version;    /* it has a version of its own, not the driver's; NULL = it has not */
};
extern const struct sim_library sim_libraries[];
extern const size_t sim_n_libraries;

/* Whether a topology's driver brings the library along. */
bool sim_library_wanted(const struct sim_library *library, const struct sim_topology *topology);

enum sim_program { SIM_PROGRAM_SMI, SIM_PROGRAM_DAEMON };
struct sim_binary {
	const char *name;
	enum sim_program program;
	bool fabric; /* only on hosts with NVSwitches */
	bool imex;   /* only on hosts with IMEX channels */
};
extern const struct sim_binary sim_binaries[];
extern const size_t sim_n_binaries;
/* Whether a topology's driver brings the program along. */
bool sim_binary_wanted(const struct sim_binary *binary, const struct sim_topology *topology);

#endif
