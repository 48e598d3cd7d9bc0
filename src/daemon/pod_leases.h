/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_leases: the plugin's part in the table of leases (docs/leases.md), with --respect-leases.
 * GPUs that others hold are not offered, and a container's GPUs are leased: first for some minutes,
 * then, once its pod has a cgroup, for as long as that exists. The kubelet's checkpoint shows which
 * pod has which device.
 */
#ifndef GRAFT_DAEMON_POD_LEASES_H
#define GRAFT_DAEMON_POD_LEASES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "kubernetes/kube_devices.h"
#include "lease/lease.h"
#include "rpc/loop.h"

/* The offered devices, and their UUIDs in leases. Borrowed until the next call. */
struct pod_offer {
	const struct graft_inventory *inventory;
	const struct graft_kube_offer *offer;
	const char *kubelet_folder; /* directory of its checkpoint */
};

struct pod_leases {
	struct graft_loop *loop;
	const struct graft_log *log;
	const char *directory; /* the table; in the arena */
	struct pod_offer offer;
	void (*changed)(void *arg); /* the held devices have changed */
	void *arg;
	struct graft_arena *arena;           /* of the directory; NULL: leases are ignored */
	struct graft_arena *busy_arena;      /* of what others hold */
	const struct graft_lease_slot *busy; /* by others */
	size_t n_busy;
	bool failed;                   /* the table could not be read, which was logged */
	struct graft_loop_watch watch; /* inotify, of the table and of the checkpoint */
	struct graft_loop_timer look;  /* for changes that no event reports: the end of a process */
};

/* Returns whether leases are respected. */
static inline bool pod_leases_count(const struct pod_leases *leases)
{
	return leases->arena != NULL;
}
/* Begins, with the table below `state_folder`, or replaces the offer. */
void pod_leases_begin(struct pod_leases *leases, const char *state_folder, const struct pod_offer *offer);
/* From now on leases are ignored. */
void pod_leases_end(struct pod_leases *leases);

/* Returns whether a holder other than a pod has the device or a part of it. */
bool pod_leases_is_busy(const struct pod_leases *leases, const struct graft_kube_device *device);
/*
 * Leases the devices to a container that is about to be made. Returns -1 with GRAFT_BUSY if another
 * holder has one of them, or with the error of the table; the container then gets none.
 */
int pod_leases_take(struct pod_leases *leases, const struct graft_kube_resource *resource, const char *const *ids,
		    size_t n_ids, struct graft_error *err);

#endif
