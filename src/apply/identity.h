/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity: the owner of what is created in a container. QUIRK: on a file system that belongs to the container's user namespace (its /dev
 * tmpfs) a file cannot be created by an id that has no name there (EOVERFLOW), root of the host's for one; and what is created should
 * belong to the container's owner anyway. So the file system ids are those of the owner while we create, and only these.
 */
#ifndef GRAFT_APPLY_IDENTITY_H
#define GRAFT_APPLY_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct graft_identity {
	bool changed;
	uid_t uid; /* the caller's file system ids */
	gid_t gid;
	uint64_t effective; /* and effective capabilities */
};

/*
 * Takes the owner's ids for file system access; nothing happens if they are ours. DAC_OVERRIDE stays effective if permitted (it would go
 * with the ids). -1: GRAFT_PERMISSION, "privilege change failed".
 */
int graft_identity_enter(struct graft_identity *identity, uid_t uid, gid_t gid, struct graft_error *err);
/* Back to the caller's. */
void graft_identity_leave(struct graft_identity *identity);
#define auto_identity __attribute__((cleanup(graft_identity_leave)))

#endif
