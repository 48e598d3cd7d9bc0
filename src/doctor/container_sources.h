/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_sources: the containers that files of engines and processes of a host mention. Private
 * to container_find.c and container_sources.c.
 */
#ifndef GRAFT_DOCTOR_CONTAINER_SOURCES_H
#define GRAFT_DOCTOR_CONTAINER_SOURCES_H

#include "doctor/container_find.h"

struct graft_finder {
	const struct graft_root *host; /* borrowed */
	struct graft_arena *arena;
	struct graft_found_container *containers; /* each ID once */
	size_t n_containers;
	bool denied;   /* some directory or file could not be read */
	size_t n_read; /* bytes, of all files together */
};

/* Fills in the containers. Failed allocations are recorded in the arena. */
void graft_finder_collect(struct graft_finder *finder);

#endif
