/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_scope: tells systemd which devices a container's scope may use, so that a daemon-reload keeps them, where only a prestart hook runs and the
 * rules would otherwise be changed behind systemd's back. libsystemd is opened at run time; without it, without a bus, or without a scope nothing happens.
 */
#ifndef GRAFT_APPLY_SYSTEMD_SCOPE_H
#define GRAFT_APPLY_SYSTEMD_SCOPE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"

struct graft_scope_device {
	unsigned int major, minor;
	const char *path;   /* of the node on the host */
	const char *access; /* "rw" */
};

/*
 * Adds DeviceAllow entries to the unit that the cgroup of `pid` belongs to, when systemd manages it. Returns 1 when it was told, 0 when there is nothing
 * to tell (the log says why), -1 when systemd refused. Must be called before the container's root is touched: it opens a library of the host.
 */
int graft_systemd_scope_allow(pid_t pid, const struct graft_scope_device *devices, size_t n_devices,
			      const struct graft_log *log, struct graft_error *err);

#endif
