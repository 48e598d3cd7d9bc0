/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caps: Linux capabilities of a program, step by step, from one table (SPEC libnvidia-container 4.1
 * is the upper bound of each row). They are those of the current user namespace: root in an
 * unprivileged container's namespace has them all.
 *
 *	struct graft_caps caps = GRAFT_CAPS_INIT;
 *	if (graft_caps_limit(&caps, GRAFT_CAPS_ALL_NEEDED, err) < 0) ...
 *	if (graft_caps_enter(&caps, GRAFT_CAPS_MOUNT, err) < 0) ...
 *
 * After graft_caps_limit() the process is not dumpable (no process may trace it or read its memory
 * and /proc files), holds no inheritable capability, and no program that it might execute gets a
 * capability that it does not have itself.
 */
#ifndef GRAFT_BASE_CAPS_H
#define GRAFT_BASE_CAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum graft_caps_step {
	GRAFT_CAPS_INIT_STEP,    /* start; children that drop everything (NVML) */
	GRAFT_CAPS_KMODS,        /* --load-kmods: modules and nodes of the host */
	GRAFT_CAPS_CONTAINER,    /* open the container's root, namespaces, cgroup; read its image */
	GRAFT_CAPS_INFO,         /* read the host, plan */
	GRAFT_CAPS_MOUNT,        /* mounts, files, device cgroup */
	GRAFT_CAPS_LDCACHE,      /* the loader's cache */
	GRAFT_CAPS_USER_LDCACHE, /* the same for a user other than root (SPEC libnvidia-container 9.9) */
	GRAFT_CAPS_CONFINE,      /* the child that reads an image, before it has read a byte of it */
	GRAFT_CAPS_READER,       /* the same, from then on */
	GRAFT_CAPS_SHUTDOWN,
	GRAFT_CAPS_STEP_MAX
};

struct graft_caps {
	bool limited;       /* graft_caps_limit() was called; until then graft_caps_enter() does nothing */
	uint64_t permitted; /* bits by capability number */
};
#define GRAFT_CAPS_INIT                          \
	{                                        \
		.limited = false, .permitted = 0 \
	}

/* Flags of graft_caps_limit(). */
enum graft_caps_limit_flag {
	/* Fail unless every capability of the table but NET_ADMIN is permitted. */
	GRAFT_CAPS_ALL_NEEDED = 1u << 0,
	/* A program will be run: the bounding set keeps what modprobe and graft-nvml need. */
	GRAFT_CAPS_MAY_EXECUTE = 1u << 1,
};

/*
 * Limits the process to the capabilities of the table; see above. `flags` are those of enum
 * graft_caps_limit_flag. Fails with GRAFT_PERMISSION, "capability change failed".
 */
int graft_caps_limit(struct graft_caps *caps, unsigned int flags, struct graft_error *err);
/*
 * Call this after the last program has been executed (MAY_EXECUTE): from then on, no executed
 * program can gain a capability.
 */
int graft_caps_end_execution(struct graft_error *err);
/* Makes exactly the capabilities of `step` effective, as far as they are permitted. */
int graft_caps_enter(const struct graft_caps *caps, enum graft_caps_step step, struct graft_error *err);

/*
 * For a child that gives up nearly everything: makes the permitted capabilities of `step` effective
 * and drops all others for good. The process is no longer dumpable.
 */
int graft_caps_keep_only(enum graft_caps_step step, struct graft_error *err);

/* Sets of this process, as bits by capability number. */
struct graft_caps_sets {
	uint64_t effective, permitted, inheritable;
};
/* Read and change them. Return 0, or -1 with errno. */
int graft_caps_read(struct graft_caps_sets *ret_sets);
int graft_caps_write(const struct graft_caps_sets *sets);

/* Returns whether all capabilities of a step but NET_ADMIN are effective. */
bool graft_caps_hold(enum graft_caps_step step);
/* Returns whether the process has no capability at all that it could give up or lose. */
bool graft_caps_is_unprivileged(void);

/*
 * For documentation and tests: name, effective set and reason of a step; the union of all steps,
 * which is also the permitted limit.
 */
const char *graft_caps_step_name(enum graft_caps_step step);
uint64_t graft_caps_step_set(enum graft_caps_step step);
const char *graft_caps_step_why(enum graft_caps_step step);
uint64_t graft_caps_all(void);
/* Returns what the bounding set keeps with GRAFT_CAPS_MAY_EXECUTE. */
uint64_t graft_caps_bounding(void);

#endif
