/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_scope: adds devices to the systemd scope of a container, so that a daemon-reload keeps
 * them. Needed where only a prestart hook runs, since systemd would otherwise not know of the
 * changed rules. Opens libsystemd at run time; does nothing without libsystemd, a bus or a scope.
 */
#ifndef GRAFT_APPLY_CGROUP_SYSTEMD_SCOPE_H
#define GRAFT_APPLY_CGROUP_SYSTEMD_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "apply/cgroup/systemd_bus.h"
#include "base/error.h"
#include "base/log.h"

struct graft_scope_device {
	unsigned int major, minor;
	const char *access; /* "rw" */
};

/*
 * Adds DeviceAllow entries to the scope that the cgroup of `pid` belongs to, if the system's
 * systemd manages and confines it. Returns 1 if entries were added, 0 if there was nothing to add
 * (the log contains the reason), -1 if systemd refused or did not answer within 2 s. In the last
 * case the container still has its devices until the next reload, so callers warn and continue.
 *
 * Call it before the container's root is touched, since it opens a library of the host, and before
 * the cgroup's own rules are added: systemd writes its rules again, and on cgroup v1 they replace
 * all others.
 */
int graft_systemd_scope_allow(pid_t pid, const struct graft_scope_device *devices, size_t n_devices,
			      const struct graft_log *log, struct graft_error *err);

/*
 * The same with the text of a /proc/PID/cgroup and a given systemd; `path` names the file in
 * messages.
 */
int graft_systemd_scope_allow_at(const struct graft_systemd *systemd, const char *path, const char *text, size_t length,
				 const struct graft_scope_device *devices, size_t n_devices,
				 const struct graft_log *log, struct graft_error *err);

#define GRAFT_SCOPE_NAME_MAX  256  /* systemd's own limit */
#define GRAFT_SCOPE_GROUP_MAX 4096 /* a path */

/* The innermost scope of a cgroup path. */
struct graft_scope {
	char name[GRAFT_SCOPE_NAME_MAX];   /* "docker-1234.scope" */
	char group[GRAFT_SCOPE_GROUP_MAX]; /* the path up to and including it: "/system.slice/docker-1234.scope" */
};
/*
 * Finds the innermost scope. Returns false if the path contains none, belongs to a user's own
 * systemd, or cannot be right (the log contains the reason).
 */
bool graft_scope_find(const char *cgroup_path, const struct graft_log *log, struct graft_scope *ret_scope);

#endif
