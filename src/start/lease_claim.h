/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_claim: replaces a claim in a container's list of devices by the devices of a lease that it
 * takes. Where leases are enforced, it takes one for devices that are named, too, and leaves the
 * list as it is. Otherwise without a claim, and where leases are off, it does nothing and opens
 * nothing.
 */
#ifndef GRAFT_START_LEASE_CLAIM_H
#define GRAFT_START_LEASE_CLAIM_H

#include <sys/types.h>

#include "base/log.h"
#include "lease/lease_holder.h"
#include "lease/lease_state.h"
#include "request/config.h"

/* Whom the lease is for: a container that is being made, or one whose first process exists. */
struct graft_lease_for {
	const struct graft_lease_container *container; /* NULL: there is a process */
	pid_t pid;                                     /* 0: the one that called this program */
	const char *wait;                              /* NVIDIA_LEASE_WAIT of the container; NULL = unset */
	const char *owner;                             /* the owner's name that the container states; NULL = none */
	const char *what;                              /* what it runs: an image or a program; NULL = not known */
	bool has_user;
	uint32_t user;                         /* as whom its programs run, on the host */
	bool only_look;                        /* takes nothing: says what it would get now */
	const struct graft_lease_state *state; /* with `only_look`: by this, and not by this host; NULL = none */
};

/* Returns -1 with GRAFT_UNSUPPORTED, file and remedy unless leases are on. */
int graft_start_lease_require(const struct graft_config *config, struct graft_error *err);

/*
 * Replaces. The new list is in the arena, and *ret_lease, whose id is NULL if there is none.
 * Returns -1 with GRAFT_INVALID for a claim that cannot be read, or as graft_lease_take(): then
 * there is no GPU. A container whose process exists has its environment already: there
 * GRAFT_UNSUPPORTED if the lease has limits, which are variables.
 */
int graft_start_lease_claim(const struct graft_config *config, const struct graft_lease_for *whom,
			    const struct graft_log *log, struct graft_arena *arena, struct graft_strings *devices,
			    struct graft_lease *ret_lease, struct graft_error *err);

#endif
