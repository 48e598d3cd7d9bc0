/* SPDX-License-Identifier: Apache-2.0 */
/* run_parts: the steps of `run`, for a process that already has its own mount namespace. */
#ifndef GRAFT_SIM_RUN_PARTS_H
#define GRAFT_SIM_RUN_PARTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "topology.h"

#define SIM_STAGE      "/run/graft-sim"  /* a tmpfs inside the namespace, an empty directory outside */
#define SIM_STAGE_ROOT SIM_STAGE "/root" /* the driver root that `create` makes */

/*
 * Makes the directories of the system (/usr, /etc, /var, ...) show the files of SIM_STAGE_ROOT, each
 * by an overlay: what is written there is lost at the end, so packages can be installed and
 * removed. Mounts below them are kept, and so are the stores of container engines. An overlay
 * becomes the namespace's root, and the other directories there stay the machine's; the working
 * directory then changes. Without `overlays`, or if the kernel refuses them, directories that lack
 * something become directories of links to the files of the driver and the host, and the databases
 * of package managers read-only. Returns 0, or -1 with the error set.
 */
int sim_cover_system(bool overlays, struct graft_error *err);

/*
 * Merges SIM_STAGE_ROOT + `directory` into a directory of the kernel (sysfs), by overlays as deep in
 * the tree as possible. Does nothing if they are impossible; links are of no use there.
 */
void sim_merge_if_possible(const char *directory, bool overlays);

/*
 * Replaces /dev by one that contains the host's nodes, without those of a real driver, and the
 * simulated ones. Returns 0, or -1 with the error set.
 */
int sim_replace_dev(struct graft_error *err);

/*
 * Adds NUMA nodes to SIM_STAGE_ROOT, where the simulated host has more of them than the machine.
 * Returns 0, or -1 with the error set.
 */
int sim_stage_numa(const struct sim_topology *topology, struct graft_error *err);

/*
 * Writes a file, and releases the text. Makes a directory unless it exists. Return 0, or -1 with the
 * error set.
 */
int sim_write_file(const char *path, mode_t mode, struct graft_buffer *take_text, struct graft_error *err);
int sim_make_directory(const char *path, struct graft_error *err);

/* Bind-mounts recursively. Returns 0, or -1 with the error set. */
int sim_bind(const char *from, const char *to, struct graft_error *err);

#endif
