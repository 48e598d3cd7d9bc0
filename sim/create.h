/* SPDX-License-Identifier: Apache-2.0 */
/* create: a topology as files below a directory. */
#ifndef GRAFT_SIM_CREATE_H
#define GRAFT_SIM_CREATE_H

#include <stdbool.h>

#include "base/error.h"
#include "topology.h"

/* Programs and library templates that are compiled into graft-sim. */
struct sim_embedded {
	const char *name;
	const unsigned char *bytes;
	const unsigned char *end;
};
extern const struct sim_embedded sim_embedded_files[];
extern const unsigned int sim_n_embedded_files;
/* The embedded file of that name, or NULL. */
const struct sim_embedded *sim_embedded_find(const char *name);

/*
 * Makes the driver root; what an earlier run made there is replaced. *ret_nodes_refused: this process may not make device nodes, so the
 * root has none. Returns 0 or -1.
 */
int sim_create(const struct sim_topology *topology, const char *directory, bool *ret_nodes_refused,
	       struct graft_error *err);

/* Where a layout puts things; for `run`. */
struct sim_places {
	const char *prefix;     /* driver root below the host root: "" or "/run/nvidia/driver" */
	char libraries[160];    /* directory of the 64-bit libraries, below the prefix */
	char libraries_32[160]; /* "" when there are none */
	const char *binaries;
	const char *share;    /* descriptions for loaders of Vulkan, EGL... */
	const char *firmware; /* directory of directories by version */
	bool has_cache;       /* /etc/ld.so.cache lists them */
};
void sim_places(const struct sim_topology *topology, struct sim_places *ret_places);

#endif
