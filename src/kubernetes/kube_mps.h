/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_mps: which MPS daemons a node runs (SPEC kubernetes 9): one for each resource whose devices
 * are shared by MPS, with the limits of a program. Pure, plain data with a JSON form.
 */
#ifndef GRAFT_KUBERNETES_KUBE_MPS_H
#define GRAFT_KUBERNETES_KUBE_MPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/record.h"
#include "host/inventory.h"
#include "host/kept_facts.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/kube_devices.h"
#include "kubernetes/kube_facts.h"

#define GRAFT_KUBE_MPS_PROGRAMS     48u /* clients that one daemon serves on a GPU */
#define GRAFT_KUBE_MPS_PROGRAMS_OLD 16u /* before compute capability 7.0 */

struct graft_kube_mps_gpu {
	const char *uuid;
	uint32_t mib; /* a program's share of its memory; 0 = unlimited */
};

struct graft_kube_mps_daemon {
	const char *resource;            /* "nvidia.com/gpu" */
	struct graft_kube_mps_gpu *gpus; /* in the order in which the daemon numbers them */
	size_t n_gpus;
	uint32_t percent; /* a program's share of the multiprocessors of a GPU */
};
extern const struct graft_record graft_kube_mps_daemon_record;

/* The daemons, in the order of the offer. */
struct graft_kube_mps {
	struct graft_kube_mps_daemon *daemons;
	size_t n_daemons;
};

/*
 * Makes the list for an offer. `kept` is NVML's answer; strings and lists are in the arena. Returns
 * 0, also for an offer without devices that MPS shares, or -1: GRAFT_INVALID for devices that MPS
 * cannot share (MIG devices, GPUs in MIG mode, more replicas than it serves), or GRAFT_NO_MEMORY.
 */
int graft_kube_mps_plan(const struct graft_kube_offer *offer, const struct graft_inventory *inventory,
			const struct graft_kept_facts *kept, struct graft_arena *arena, struct graft_kube_mps *ret_mps,
			struct graft_error *err);

/*
 * Reads this node and makes its list (kube_mps_node.c). Reads nothing if MPS is not configured.
 * Everything is in the arena. Returns 0, or -1 with the errors of graft_host_discover(),
 * graft_kube_facts(), graft_kube_offer() and graft_kube_mps_plan().
 */
int graft_kube_mps_read(const struct graft_kube_config *config, enum graft_kube_ask ask, const struct graft_log *log,
			struct graft_arena *arena, struct graft_kube_mps *ret_mps, struct graft_error *err);

#endif
