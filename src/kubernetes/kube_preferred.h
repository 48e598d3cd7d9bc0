/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_preferred: which of the available devices suit a container best (SPEC kubernetes 6.6, 6.7).
 * Whole GPUs are chosen by their links, so that the remaining ones stay well connected; replicas
 * and MIG devices are chosen by the policy. Pure.
 */
#ifndef GRAFT_KUBERNETES_KUBE_PREFERRED_H
#define GRAFT_KUBERNETES_KUBE_PREFERRED_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/pci_tree.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/kube_devices.h"

/* A ContainerPreferredAllocationRequest. */
struct graft_kube_preference {
	const char *const *available;
	size_t n_available;
	const char *const *required; /* must be in the answer; all of them are available */
	size_t n_required;
	uint32_t size; /* how many devices the container gets */
};

/*
 * Chooses `size` of the available devices. *ret_ids has that many, the required ones first. `tree`
 * may be NULL: all links are equal. Returns 0, or -1: GRAFT_INVALID "not enough available devices
 * to satisfy allocation", also if the policy `distinct` would need one device twice, or "device ID
 * is named twice"; GRAFT_UNKNOWN_DEVICE for an id that the resource does not have; GRAFT_NO_MEMORY.
 */
int graft_kube_prefer(const struct graft_kube_config *config, const struct graft_kube_resource *resource,
		      const struct graft_pci_tree *tree, const struct graft_kube_preference *preference,
		      struct graft_arena *arena, const char *const **ret_ids, struct graft_error *err);

#endif
