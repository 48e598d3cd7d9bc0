/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity: makes what is created in a container belong to its owner. QUIRK: on a file system that
 * belongs to the container's user namespace (its /dev tmpfs), an id without a mapping there, such
 * as the host's root, cannot create a file (EOVERFLOW); and what is created should belong to the
 * container's owner anyway. While we create something, the file system ids, and only these, are the
 * owner's.
 */
#ifndef GRAFT_APPLY_NAMESPACE_IDENTITY_H
#define GRAFT_APPLY_NAMESPACE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct graft_identity {
	bool changed;
	uid_t uid; /* the caller's file system ids */
	gid_t gid;
	uint64_t effective; /* the caller's effective capabilities */
};

/*
 * Switches to the owner's ids for file system access; does nothing if they are ours already.
 * DAC_OVERRIDE and DAC_READ_SEARCH are kept effective if permitted, since the change of ids would
 * drop them. Fails with GRAFT_PERMISSION, "privilege change failed".
 */
int graft_identity_enter(struct graft_identity *identity, uid_t uid, gid_t gid, struct graft_error *err);
/* Restores the caller's ids and effective capabilities. */
void graft_identity_leave(struct graft_identity *identity);

#endif
