/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_scope: tells systemd which devices a container's scope may use, so that a daemon-reload keeps them, where only a prestart hook runs and the
 * rules would otherwise be changed behind systemd's back. libsystemd is opened at run time; without it, without a bus, or without a scope nothing happens.
 */
#ifndef GRAFT_APPLY_SYSTEMD_SCOPE_H
#define GRAFT_APPLY_SYSTEMD_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "apply/systemd_bus.h"
#include "base/error.h"
#include "base/log.h"

struct graft_scope_device {
	unsigned int major, minor;
	const char *access; /* "rw" */
};

/*
 * Adds DeviceAllow entries to the scope that the cgroup of `pid` belongs to, when the system's systemd manages it and confines it. Returns 1 when it
 * was told, 0 when there is nothing to tell (the log says why), -1 when systemd refused or gave no answer in 2 s: the container has its devices
 * all the same, until the next reload, so callers warn and go on.
 *
 * Must be called before the container's root is touched (it opens a library of the host), and before the cgroup's own rules are added: systemd
 * puts its rules in force anew, on cgroup v1 in place of all that were there.
 */
int graft_systemd_scope_allow(pid_t pid, const struct graft_scope_device *devices, size_t n_devices,
			      const struct graft_log *log, struct graft_error *err);

/* The same with the text of a /proc/PID/cgroup and another systemd; `path` names the file in messages. */
int graft_systemd_scope_allow_at(const struct graft_systemd *systemd, const char *path, const char *text, size_t length,
				 const struct graft_scope_device *devices, size_t n_devices,
				 const struct graft_log *log, struct graft_error *err);

#define GRAFT_SCOPE_NAME_MAX  256  /* systemd's own limit */
#define GRAFT_SCOPE_GROUP_MAX 4096 /* a path */

/* The innermost scope of a cgroup path. */
struct graft_scope {
	char name[GRAFT_SCOPE_NAME_MAX];   /* "docker-1234.scope" */
	char group[GRAFT_SCOPE_GROUP_MAX]; /* the path up to it: "/system.slice/docker-1234.scope" */
};
/* False: the path has none, or it belongs to a user's own systemd, or it cannot be right (the log says so). */
bool graft_scope_find(const char *cgroup_path, const struct graft_log *log, struct graft_scope *ret_scope);

#endif
