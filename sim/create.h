/* SPDX-License-Identifier: Apache-2.0 */
/* create: creates the files of a topology below a directory. */
#ifndef GRAFT_SIM_CREATE_H
#define GRAFT_SIM_CREATE_H

#include <stdbool.h>

#include "base/error.h"
#include "topology.h"

/* Programs and library templates compiled into graft-sim. */
struct sim_embedded {
	const char *name;
	const unsigned char *bytes;
	const unsigned char *end;
};
extern const struct sim_embedded sim_embedded_files[];
extern const unsigned int sim_n_embedded_files;

/*
 * Creates the driver root, replacing what an earlier run created there. *ret_nodes_refused is set
 * if this process may not create device nodes, in which case the root has none. Returns 0, or -1
 * with the error set.
 */
int sim_create(const struct sim_topology *topology, const char *directory, bool *ret_nodes_refused,
	       struct graft_error *err);

/* The directories of a layout; also used by `run`. */
struct sim_places {
	const char *prefix;     /* driver root, below the host's root: "" or "/run/nvidia/driver" */
	char libraries[160];    /* directory of the 64-bit libraries, below the prefix */
	char libraries_32[160]; /* "" if there is none */
	const char *binaries;
	const char *share;    /* for the descriptions that the loaders of Vulkan, EGL etc. read */
	const char *firmware; /* contains one directory for each version */
	bool has_cache;       /* /etc/ld.so.cache lists the libraries */
};
void sim_places(const struct sim_topology *topology, struct sim_places *ret_places);

#endif
