/* SPDX-License-Identifier: Apache-2.0 */
/* identity: setfsuid(2), setfsgid(2) and their effect on capabilities. Knows nothing of files. */
#include "apply/namespace/identity.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(name) (UINT64_C(1) << CAP_##name)
#define WANTED    (BIT(DAC_OVERRIDE) | BIT(DAC_READ_SEARCH))

struct caps {
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static int get_caps(struct caps *caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };

	return (int)syscall(SYS_capget, &header, caps->data);
}

static int set_effective(struct caps *caps, uint64_t effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };

	caps->data[0].effective = (uint32_t)effective & caps->data[0].permitted;
	caps->data[1].effective = (uint32_t)(effective >> 32) & caps->data[1].permitted;
	return (int)syscall(SYS_capset, &header, caps->data);
}

static uint64_t effective_of(const struct caps *caps)
{
	return (uint64_t)caps->data[1].effective << 32 | caps->data[0].effective;
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
	struct caps caps;

	*identity = (struct graft_identity){ .changed = false, .uid = current_uid(), .gid = current_gid() };
	if (identity->uid == uid && identity->gid == gid)
		return 0;
	if (get_caps(&caps) < 0)
		return graft_fail_errno(err, errno, "privilege change failed");
	identity->effective = effective_of(&caps);
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
	if (get_caps(&caps) < 0 || set_effective(&caps, identity->effective | WANTED) < 0) {
		int sys = errno;

		graft_identity_leave(identity);
		return graft_fail_errno(err, sys, "privilege change failed");
	}
	return 0;
}

void graft_identity_leave(struct graft_identity *identity)
{
	struct caps caps;

	if (!identity->changed)
		return;
	identity->changed = false;
	(void)setfsuid(identity->uid);
	(void)setfsgid(identity->gid);
	/*
	 * QUIRK: on the return to id 0 the kernel raises every permitted file capability, including
	 * those that were not effective.
	 */
	if (get_caps(&caps) == 0)
		(void)set_effective(&caps, identity->effective);
}
