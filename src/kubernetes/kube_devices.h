/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_devices: the resources that a node offers to the kubelet, and the devices of each (SPEC
 * kubernetes 6.3), from an inventory and a configuration. Pure, plain data with a JSON form.
 *
 * A device of a resource is what the kubelet counts: a GPU, a MIG device, or a replica of one of
 * them. Several devices of the kubelet may thus be one device of the host; `base_id` says which.
 */
#ifndef GRAFT_KUBERNETES_KUBE_DEVICES_H
#define GRAFT_KUBERNETES_KUBE_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/record.h"
#include "host/inventory.h"
#include "host/pci_tree.h"
#include "kubernetes/kube_config.h"

struct graft_kube_device {
	const char *id;      /* for the kubelet: "GPU-...", "MIG-...", "GPU-...::3", "tegra" */
	const char *base_id; /* the same without the number of a replica */
	const char *index;   /* "0", of a MIG device "0:1", under WSL "all" */
	uint32_t replicas;   /* how many there are of it; 1: it is not shared */
	uint32_t gpu;        /* index of its GPU in the inventory */
	const char *bus_id;  /* of its GPU, "00000000:1b:00.0"; NULL if it has none */
	bool mig;            /* `gi` and `ci` are those of a MIG device */
	uint32_t gi, ci;
	bool has_numa_node;
	uint32_t numa_node;
	const char **paths; /* device nodes, below the dev root */
	size_t n_paths;
};

struct graft_kube_resource {
	const char *name;                         /* "nvidia.com/gpu" */
	const char *socket;                       /* "nvidia-gpu.sock" */
	enum graft_kube_sharing_strategy sharing; /* of those of its devices that are shared */
	bool fail_requests_greater_than_one;
	bool whole_gpus; /* its devices are whole GPUs whose links matter (SPEC kubernetes 6.6) */
	/* Sorted by GPU, then MIG device, then replica. */
	struct graft_kube_device *devices;
	size_t n_devices;
};

/* All that a node offers: the resources that have devices. */
struct graft_kube_offer {
	struct graft_kube_resource *resources;
	size_t n_resources;
};
extern const struct graft_record graft_kube_offer_record, graft_kube_resource_record;

/*
 * Makes the offer of a host. Reports to `log` what is left out and why: GPUs and MIG devices whose
 * UUID is not known, split instances under `mixed`, shared devices that the host does not have.
 * `tree` may be NULL: no device has a NUMA node. Returns 0, also without any device, or -1 with
 * GRAFT_INVALID and the messages of SPEC kubernetes 6.3, or GRAFT_NO_MEMORY.
 */
int graft_kube_offer(const struct graft_kube_config *config, const struct graft_inventory *inventory,
		     const struct graft_pci_tree *tree, const struct graft_log *log, struct graft_arena *arena,
		     struct graft_kube_offer *ret_offer, struct graft_error *err);

/* Returns the device of that id, or NULL. */
const struct graft_kube_device *graft_kube_find_device(const struct graft_kube_resource *resource, const char *id);

#endif
