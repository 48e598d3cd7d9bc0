/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_bus: what a unit of the system manager may use, asked and told over D-Bus. libsystemd's sd-bus does the talking; it is opened at run time, so
 * that nothing needs it where no systemd runs. Knows neither processes nor GPUs.
 *
 * Every call ends when the time given to graft_systemd_bus_open() is over, however long systemd takes (it answers nobody while it reloads).
 */
#ifndef GRAFT_APPLY_SYSTEMD_BUS_H
#define GRAFT_APPLY_SYSTEMD_BUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"

/* A place where systemd listens. */
struct graft_systemd_address {
	const char *address; /* of D-Bus: "unix:path=..." */
	bool is_bus;         /* a message bus, on which it is one of many; else its own socket, where nobody else is */
};

/* Where systemd is to be found; tests have their own. */
struct graft_systemd {
	const char *library;                           /* the name of libsystemd for the loader */
	const struct graft_systemd_address *addresses; /* tried in this order; one without an address ends them */
	int timeout_ms;                                /* for everything between opening and closing */
};

/* One DeviceAllow of a unit: a node or a class, and some of "rwm". */
struct graft_systemd_allow {
	const char *node;
	const char *access;
};

/* The part of a unit that decides about devices. Strings live in the arena that was given. */
struct graft_systemd_unit {
	const char *control_group; /* "" = the unit is not running, or there is no such unit */
	const char *device_policy; /* "auto", "closed", "strict" */
	struct graft_systemd_allow *allows;
	size_t n_allows;
};

struct graft_systemd_bus;

/*
 * Opens a connection. 1: there it is. 0: there is no libsystemd or no bus; the log says which. -1: somebody listens but the connection failed, or the
 * time is over (GRAFT_TIMEOUT).
 */
int graft_systemd_bus_open(const struct graft_systemd *systemd, const struct graft_log *log,
			   struct graft_systemd_bus **ret_bus, struct graft_error *err);
/* Asks for a scope by its name ("docker-1234.scope"). */
int graft_systemd_bus_read(struct graft_systemd_bus *bus, const char *name, struct graft_arena *arena,
			   struct graft_systemd_unit *ret_unit, struct graft_error *err);
/*
 * Adds to what the unit may use, until it ends; an entry for the same node is replaced. When this returns, systemd has put its rules into the
 * unit's cgroup: on cgroup v1 whatever others allowed there is gone, on v2 its program stands beside theirs.
 */
int graft_systemd_bus_allow(struct graft_systemd_bus *bus, const char *name, const struct graft_systemd_allow *allows,
			    size_t n_allows, struct graft_error *err);
/* NULL is fine. Never waits. */
void graft_systemd_bus_close(struct graft_systemd_bus *bus);

#endif
