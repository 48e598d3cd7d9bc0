/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_host: the GPUs of this host that can be lent. Reads procfs and sysfs; asks NVML only if the
 * claim needs a fact that neither the kernel nor a file from earlier has.
 */
#ifndef GRAFT_LEASE_LEASE_HOST_H
#define GRAFT_LEASE_LEASE_HOST_H

#include "base/log.h"
#include "lease/lease_choice.h"
#include "request/config.h"

/*
 * Reads them. `claim` decides which facts are needed; NULL: those for a listing. Everything is in
 * the arena. Returns -1 with GRAFT_UNSUPPORTED if there are no GPUs that the kernel driver lists,
 * or as graft_host_identify() and graft_nvml_ask().
 */
int graft_lease_host_read(const struct graft_config *config, const struct graft_claim *claim,
			  const struct graft_log *log, struct graft_arena *arena, struct graft_lendable *ret_host,
			  struct graft_error *err);

#endif
