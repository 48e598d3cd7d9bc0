/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_mps: what a container needs if its lease has a slot of a GPU that is shared by MPS: the
 * daemon's pipes and shared memory, and the slot's limits.
 */
#ifndef GRAFT_START_SHARE_MPS_H
#define GRAFT_START_SHARE_MPS_H

#include "base/log.h"
#include "formats/cdi/cdi.h"
#include "formats/json/json_document.h"
#include "formats/oci_spec.h"
#include "lease/lease.h"
#include "request/config.h"

#define GRAFT_START_MPS_PIPE "/tmp/nvidia-mps" /* in containers; where CUDA looks by default */

/* Returns the host's user ID of the container's process. */
uint32_t graft_start_host_uid(const struct graft_oci_spec *spec);
/*
 * Returns whether the container's /dev/shm is the default one of an engine, which can be replaced.
 */
bool graft_start_has_default_shm(const struct graft_oci_spec *spec);
/*
 * Adds pipes, shared memory and limits to config.json. *ret_mps is what was added, in the arena, or
 * NULL if the lease has no such slot.
 * Returns -1 with GRAFT_NO_MEMORY or like graft_oci_apply_edits().
 */
int graft_start_share_mps(const struct graft_config *config, const struct graft_oci_spec *spec,
			  const struct graft_lease *lease, const struct graft_log *log, struct graft_arena *arena,
			  struct graft_json_document *document, const struct graft_cdi_edits **ret_mps,
			  struct graft_error *err);

#endif
