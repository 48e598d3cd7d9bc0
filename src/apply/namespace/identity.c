/* SPDX-License-Identifier: Apache-2.0 */
/* identity: setfsuid(2), setfsgid(2) and their effect on capabilities. Knows nothing of files. */
#include "apply/namespace/identity.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/fsuid.h>

#include "base/caps.h"

#define BIT(name) (UINT64_C(1) << CAP_##name)
#define WANTED    (BIT(DAC_OVERRIDE) | BIT(DAC_READ_SEARCH))

static int set_effective(uint64_t effective)
{
	struct graft_caps_sets sets;

	if (graft_caps_read(&sets) < 0)
		return -1;
	sets.effective = effective & sets.permitted;
	return graft_caps_write(&sets);
}

/* Passing an invalid id changes nothing and returns the current one. */
static uid_t current_uid(void)
{
	return (uid_t)setfsuid((uid_t)-1);
}

static gid_t current_gid(void)
{
	return (gid_t)setfsgid((gid_t)-1);
}

int graft_identity_enter(struct graft_identity *identity, uid_t uid, gid_t gid, struct graft_error *err)
{
	struct graft_caps_sets sets;

	*identity = (struct graft_identity){ .changed = false, .uid = current_uid(), .gid = current_gid() };
	if (identity->uid == uid && identity->gid == gid)
		return 0;
	if (graft_caps_read(&sets) < 0)
		return graft_fail_errno(err, errno, "privilege change failed");
	identity->effective = sets.effective;
	identity->changed = true;
	/*
	 * The group first: afterwards we may lack the right. Neither call reports failure, so the
	 * ids are read back.
	 */
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	if (current_uid() != uid || current_gid() != gid) {
		graft_identity_leave(identity);
		return graft_fail(err, GRAFT_PERMISSION, EPERM, "privilege change failed");
	}
	if (set_effective(identity->effective | WANTED) < 0) {
		int sys = errno;

		graft_identity_leave(identity);
		return graft_fail_errno(err, sys, "privilege change failed");
	}
	return 0;
}

void graft_identity_leave(struct graft_identity *identity)
{
	if (!identity->changed)
		return;
	identity->changed = false;
	(void)setfsuid(identity->uid);
	(void)setfsgid(identity->gid);
	/*
	 * QUIRK: on the return to id 0 the kernel raises every permitted file capability, including
	 * those that were not effective.
	 */
	(void)set_effective(identity->effective);
}
