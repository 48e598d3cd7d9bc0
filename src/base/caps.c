/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caps: capability sets by capget(2), capset(2) and prctl(2), without libcap: for three calls a
 * library is not worth the 50 us that it adds to each start. Knows which capabilities a step may
 * hold, not what the step does.
 */
#include "base/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(name) (UINT64_C(1) << CAP_##name)

/* What a step may hold: SPEC libnvidia-container 4.1. */
static const struct {
	const char *name;
	uint64_t effective;
	const char *why;
} steps[GRAFT_CAPS_STEP_MAX] = {
	[GRAFT_CAPS_INIT_STEP] = { "init", BIT(KILL) | BIT(SETUID) | BIT(SETGID) | BIT(SYS_CHROOT),
				   "a child that loads driver code must be able to change its ids and its root" },
	[GRAFT_CAPS_KMODS] = { "kmods",
			       BIT(KILL) | BIT(SETUID) | BIT(SETGID) | BIT(SYS_CHROOT) | BIT(CHOWN) | BIT(FOWNER) |
				   BIT(MKNOD) | BIT(SETPCAP),
			       "nodes get the owner and mode that the driver states; modprobe inherits SYS_MODULE" },
	[GRAFT_CAPS_CONTAINER] = { "container", BIT(KILL) | BIT(DAC_READ_SEARCH) | BIT(SYS_PTRACE),
				   "/proc/PID of another user's process, directories closed to others" },
	[GRAFT_CAPS_INFO] = { "info", BIT(KILL), "the host is read as any user reads it" },
	[GRAFT_CAPS_MOUNT] = { "mount",
			       BIT(KILL) | BIT(NET_ADMIN) | BIT(SETUID) | BIT(SETGID) | BIT(SYS_CHROOT) |
				   BIT(SYS_ADMIN) | BIT(DAC_READ_SEARCH) | BIT(SYS_PTRACE) | BIT(DAC_OVERRIDE),
			       "joining and mounting need SYS_ADMIN and SYS_CHROOT, bpf NET_ADMIN, file owners "
			       "SETUID" },
	[GRAFT_CAPS_LDCACHE] = { "ldcache",
				 BIT(KILL) | BIT(SETUID) | BIT(SETGID) | BIT(SYS_CHROOT) | BIT(SYS_ADMIN) |
				     BIT(DAC_READ_SEARCH) | BIT(SYS_PTRACE) | BIT(SETPCAP),
				 "files are written with the ids of the container's owner" },
	[GRAFT_CAPS_USER_LDCACHE] = { "ldcache-user",
				      BIT(KILL) | BIT(SETUID) | BIT(SETGID) | BIT(SYS_CHROOT) | BIT(SYS_ADMIN) |
					  BIT(DAC_READ_SEARCH) | BIT(SYS_PTRACE) | BIT(SETPCAP) | BIT(DAC_OVERRIDE),
				      "the same where the caller is not root but the container's files are root's" },
	[GRAFT_CAPS_CONFINE] = { "confine", BIT(SYS_ADMIN) | BIT(SYS_CHROOT) | BIT(DAC_READ_SEARCH),
				 "the image's mounts are copied without nodes, and become the reader's root" },
	[GRAFT_CAPS_READER] = { "reader", BIT(DAC_READ_SEARCH),
				"files and directories of the image that are closed to others" },
	[GRAFT_CAPS_SHUTDOWN] = { "shutdown", BIT(KILL), "nothing is left to do" },
};

/*
 * SPEC libnvidia-container 4.1 demands this one as well. For loading device programs the kernel
 * accepts SYS_ADMIN instead, and Apptainer passes on all of the others but not this one.
 */
static const uint64_t dispensable = BIT(NET_ADMIN);

/*
 * What a program that we execute may have as root. These are for modprobe and for graft-nvml, which
 * must be able to leave its ids and its root; SPEC libnvidia-container 4.1 has no such program.
 */
static const uint64_t bounding_keep = BIT(DAC_OVERRIDE) | BIT(SYS_MODULE) | BIT(KILL) | BIT(SETUID) | BIT(SETGID) |
				      BIT(SYS_CHROOT);

int graft_caps_read(struct graft_caps_sets *ret_sets)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return -1;
	ret_sets->effective = (uint64_t)data[1].effective << 32 | data[0].effective;
	ret_sets->permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	ret_sets->inheritable = (uint64_t)data[1].inheritable << 32 | data[0].inheritable;
	return 0;
}

int graft_caps_write(const struct graft_caps_sets *sets)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{ (uint32_t)sets->effective, (uint32_t)sets->permitted, (uint32_t)sets->inheritable },
		{ (uint32_t)(sets->effective >> 32), (uint32_t)(sets->permitted >> 32),
		  (uint32_t)(sets->inheritable >> 32) },
	};

	return (int)syscall(SYS_capset, &header, data);
}

static int fail_capability_change(int sys, struct graft_error *err)
{
	return graft_fail_errno(err, sys, "capability change failed");
}

bool graft_caps_is_unprivileged(void)
{
	struct graft_caps_sets sets;

	return graft_caps_read(&sets) == 0 && sets.permitted == 0;
}

bool graft_caps_hold(enum graft_caps_step step)
{
	const uint64_t needed = steps[step].effective & ~dispensable;
	struct graft_caps_sets sets;

	return graft_caps_read(&sets) == 0 && (sets.effective & needed) == needed;
}

uint64_t graft_caps_all(void)
{
	uint64_t all = 0;

	for (int step = 0; step < GRAFT_CAPS_STEP_MAX; step++)
		all |= steps[step].effective;
	return all;
}

/*
 * Dropping needs SETPCAP, which the caller still has. We try the numbers until the kernel knows no
 * more of them. Dropping a capability that is already gone is not an error, so the set need not be
 * read first.
 */
static int drop_bounding(void)
{
	for (unsigned int cap = 0; cap < 64; cap++) {
		if ((bounding_keep >> cap & 1u) != 0)
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL ? 0 : -1;
	}
	return 0;
}

/* LeakSanitizer has to attach to the process, which it cannot do if the process is not dumpable. */
static int forbid_dumps(void)
{
#ifdef __SANITIZE_ADDRESS__
	return 0;
#else
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

/*
 * SPEC libnvidia-container 4.1 drops every capability but two from the bounding set, so that a
 * program executed as root cannot regain what was given up. That takes 38 system calls and 17 us.
 * Where nothing is executed at all, no_new_privs has the same effect with one call (0.3 us), and
 * covers set-user-ID programs too. Only modprobe (MAY_EXECUTE), which must gain SYS_MODULE, needs
 * the bounding set.
 */
int graft_caps_limit(struct graft_caps *caps, unsigned int flags, struct graft_error *err)
{
	const uint64_t needed = graft_caps_all() & ~dispensable;
	struct graft_caps_sets sets;

	if (forbid_dumps() < 0 || graft_caps_read(&sets) < 0)
		return fail_capability_change(errno, err);
	if ((flags & GRAFT_CAPS_ALL_NEEDED) != 0 && (sets.permitted & needed) != needed)
		return fail_capability_change(EPERM, err);
	if ((flags & GRAFT_CAPS_MAY_EXECUTE) == 0) {
		if (graft_caps_end_execution(err) < 0)
			return -1;
	} else if ((sets.permitted & BIT(SETPCAP)) != 0) {
		sets.effective |= BIT(SETPCAP);
		if (graft_caps_write(&sets) < 0 || drop_bounding() < 0)
			return fail_capability_change(errno, err);
	}
	sets.permitted &= graft_caps_all();
	sets.effective &= sets.permitted;
	sets.inheritable = 0;
	if (graft_caps_write(&sets) < 0)
		return fail_capability_change(errno, err);
	caps->permitted = sets.permitted;
	caps->limited = true;
	return 0;
}

int graft_caps_end_execution(struct graft_error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail_capability_change(errno, err);
	return 0;
}

int graft_caps_enter(const struct graft_caps *caps, enum graft_caps_step step, struct graft_error *err)
{
	struct graft_caps_sets sets = {
		.effective = steps[step].effective & caps->permitted,
		.permitted = caps->permitted,
	};

	if (caps->limited && graft_caps_write(&sets) < 0)
		return fail_capability_change(errno, err);
	return 0;
}

int graft_caps_keep_only(enum graft_caps_step step, struct graft_error *err)
{
	struct graft_caps_sets sets;

	if (forbid_dumps() < 0 || graft_caps_end_execution(err) < 0 || graft_caps_read(&sets) < 0)
		return fail_capability_change(errno, err);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	sets.permitted &= steps[step].effective;
	sets.effective = sets.permitted;
	sets.inheritable = 0;
	return graft_caps_write(&sets) < 0 ? fail_capability_change(errno, err) : 0;
}

uint64_t graft_caps_bounding(void)
{
	return bounding_keep;
}

const char *graft_caps_step_name(enum graft_caps_step step)
{
	return steps[step].name;
}

uint64_t graft_caps_step_set(enum graft_caps_step step)
{
	return steps[step].effective;
}

const char *graft_caps_step_why(enum graft_caps_step step)
{
	return steps[step].why;
}
