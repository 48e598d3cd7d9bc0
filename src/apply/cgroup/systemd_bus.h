/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_bus: reads and sets over D-Bus which devices a unit of the system manager may use. Uses
 * libsystemd's sd-bus, which it opens at run time, so that hosts without systemd do not need it.
 * Knows neither processes nor GPUs.
 *
 * Every call returns by the deadline set in graft_systemd_bus_open(), however long systemd takes
 * (it does not answer while it reloads).
 */
#ifndef GRAFT_APPLY_CGROUP_SYSTEMD_BUS_H
#define GRAFT_APPLY_CGROUP_SYSTEMD_BUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"

/* An address where systemd may listen. */
struct graft_systemd_address {
	const char *address; /* a D-Bus address: "unix:path=..." */
	bool is_bus;         /* a message bus, shared with other services; otherwise systemd's private socket */
};

/* How to reach systemd; tests have their own. */
struct graft_systemd {
	const char *library;                           /* file name of libsystemd, for the dynamic loader */
	const struct graft_systemd_address *addresses; /* tried in order; an entry without an address ends the list */
	int timeout_ms;                                /* for everything between opening and closing */
};

/* One DeviceAllow entry of a unit: a node or a class, and some of "rwm". */
struct graft_systemd_allow {
	const char *node;
	const char *access;
};

/*
 * The properties of a unit that decide about devices. Strings are allocated in the caller's arena.
 */
struct graft_systemd_unit {
	const char *control_group; /* "": the unit is not running or does not exist */
	const char *device_policy; /* "auto", "closed", "strict" */
	struct graft_systemd_allow *allows;
	size_t n_allows;
};

struct graft_systemd_bus;

/*
 * Opens a connection. Returns 1 when connected; 0 if there is no libsystemd or no bus, and the log
 * names which; -1 if a process listens but the connection failed or timed out (GRAFT_TIMEOUT).
 */
int graft_systemd_bus_open(const struct graft_systemd *systemd, const struct graft_log *log,
			   struct graft_systemd_bus **ret_bus, struct graft_error *err);
/* Reads the properties of a scope by its name ("docker-1234.scope"). */
int graft_systemd_bus_read(struct graft_systemd_bus *bus, const char *name, struct graft_arena *arena,
			   struct graft_systemd_unit *ret_unit, struct graft_error *err);
/*
 * Adds to the devices that the unit may use, until the unit stops; an entry for the same node is
 * replaced. On return systemd has put its rules into the unit's cgroup: on cgroup v1 they replace
 * what others allowed there, on v2 its program is attached next to theirs.
 */
int graft_systemd_bus_allow(struct graft_systemd_bus *bus, const char *name, const struct graft_systemd_allow *allows,
			    size_t n_allows, struct graft_error *err);
/* Closes the connection without waiting. NULL is fine. */
void graft_systemd_bus_close(struct graft_systemd_bus *bus);

#endif
