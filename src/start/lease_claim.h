/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_claim: takes a lease for a claim in a container's list of devices, and replaces the claim
 * by the devices of the lease. Where leases are enforced, it also takes one for devices that are
 * named, and leaves that list unchanged. Without a claim, or if leases are off, it does nothing and
 * opens nothing.
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
	pid_t pid;                                     /* 0: the caller of this program */
	const char *wait;                              /* NVIDIA_LEASE_WAIT of the container; NULL = unset */
	const char *owner;                             /* the owner's name that the container states; NULL = none */
	const char *what;                              /* what it runs: an image or a program; NULL = not known */
	bool has_user;
	uint32_t user;  /* the user, on the host, as whom its programs run */
	bool only_look; /* take nothing, only determine what it would get now */
	const struct graft_lease_state
	    *state; /* with `only_look`: use this inventory instead of this host; NULL = none */
};

/* Returns -1 with GRAFT_UNSUPPORTED unless leases are on; the error names the file and a remedy. */
int graft_start_lease_require(const struct graft_config *config, struct graft_error *err);

/*
 * Replaces the claim. The new list and *ret_lease, whose id is NULL if no lease was taken, are in
 * the arena. Returns -1 with GRAFT_INVALID for a malformed claim, or like graft_lease_take(); the
 * container then gets no GPU. Also GRAFT_UNSUPPORTED if the container's process exists and the
 * lease has limits: they are variables, and the process has its environment already.
 */
int graft_start_lease_claim(const struct graft_config *config, const struct graft_lease_for *whom,
			    const struct graft_log *log, struct graft_arena *arena, struct graft_strings *devices,
			    struct graft_lease *ret_lease, struct graft_error *err);

#endif
