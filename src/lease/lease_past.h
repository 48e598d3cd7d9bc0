/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_past: what the logs say about GPUs: the kernel's, which have failed; the table's, since
 * when they are free, and which a container had before. Pure.
 */
#ifndef GRAFT_LEASE_LEASE_PAST_H
#define GRAFT_LEASE_LEASE_PAST_H

#include "lease/lease_choice.h"

/*
 * Sets `ill` of the GPUs and MIG devices that have failed and have not recovered since, as far as
 * the kernel's log reports (SPEC kubernetes 6.8). `text` is as klogctl() gives it, "<6>[ 12.3]
 * text", or without these marks. SECURITY: lines of processes do not count. Texts are in the arena.
 * Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_past_faults(const char *text, struct graft_arena *arena, struct graft_lendable *host,
			    struct graft_error *err);

/* Sets `freed` of the GPUs that the log reports. */
void graft_lease_past_freed(const char *log, struct graft_lendable *host);

/*
 * Finds the UUIDs that a container had with its last lease. None if the log does not say. Strings
 * are in the arena. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_lease_past_devices(const char *log, const char *container, struct graft_arena *arena,
			     struct graft_strings *ret_devices, struct graft_error *err);

#endif
