/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_staleness: whether CDI specifications still fit this host, by what they say that they were made from (plan/cdi_fingerprint.h). Costs nothing for those that
 * say nothing; otherwise the host is looked at, by a few files of procfs.
 */
#ifndef GRAFT_CLI_CDI_STALENESS_H
#define GRAFT_CLI_CDI_STALENESS_H

#include "host/discover.h"
#include "plan/cdi_fingerprint.h"

/* This host. */
struct cli_cdi_host {
	const struct graft_host_options *options; /* borrowed */
	struct graft_arena *arena;                /* of the facts */
};

/*
 * 1: the specification says what it was made from; *ret_made has it, and *ret_why is NULL when it fits this host, else a sentence for a person. 0: it says
 * nothing. `devices`: names of its devices that are about to be used; of other GPUs it then has to say no more than where they are. n_devices 0: all of it.
 * -1: GRAFT_NO_MEMORY, and as graft_host_identify().
 */
int cli_cdi_why_stale(const struct cli_cdi_host *host, const struct graft_cdi_spec *spec, const char *const *devices,
		      size_t n_devices, struct graft_cdi_fingerprint *ret_made, const char **ret_why,
		      struct graft_error *err);

#endif
