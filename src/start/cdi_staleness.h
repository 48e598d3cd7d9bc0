/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_staleness: whether a CDI specification still fits this host, judged by the fingerprint of the
 * host that it was made from (plan/cdi_fingerprint.h). Specifications without a fingerprint cost
 * nothing; for the others a few files of procfs are read.
 */
#ifndef GRAFT_START_CDI_STALENESS_H
#define GRAFT_START_CDI_STALENESS_H

#include "host/discover.h"
#include "plan/cdi_fingerprint.h"

/*
 * Compares the specification with the host. 1: it has a fingerprint, which is stored in *ret_made;
 * *ret_why is NULL if it fits this host, otherwise a sentence for the user. 0: it has no
 * fingerprint. `devices` names those of its devices that are about to be used; of other GPUs, only
 * the location is compared. n_devices 0: all of it. -1: GRAFT_NO_MEMORY, and as
 * graft_host_identify(). The facts are in the arena.
 */
int graft_cdi_why_stale(const struct graft_host_options *host, const struct graft_cdi_spec *spec,
			const char *const *devices, size_t n_devices, struct graft_arena *arena,
			struct graft_cdi_fingerprint *ret_made, const char **ret_why, struct graft_error *err);

#endif
