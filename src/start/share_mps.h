/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_mps: what a container needs if its lease has a slot of a GPU that is shared by MPS: the
 * daemon's pipes and shared memory, and the slot's limits.
 */
#ifndef GRAFT_START_SHARE_MPS_H
#define GRAFT_START_SHARE_MPS_H

#include "lease/lease.h"
#include "start/start.h"

#define GRAFT_START_MPS_PIPE "/tmp/nvidia-mps" /* in containers; where CUDA looks by default */

/* Returns the host's user ID of the container's process. */
uint32_t graft_start_host_uid(const struct graft_oci_spec *spec);
/*
 * Returns whether the container's /dev/shm is the default one of an engine, which can be replaced.
 */
bool graft_start_has_default_shm(const struct graft_oci_spec *spec);
/*
 * Adds the limits to config.json, and pipes and shared memory to create->edits;
 * create->has_lease_mps says whether the lease has such a slot. Of *create it uses the
 * configuration, the document and its view. Returns -1 with GRAFT_NO_MEMORY or like
 * graft_oci_apply_edits().
 */
int graft_start_share_mps(struct graft_start *create, const struct graft_lease *lease, struct graft_error *err);

#endif
