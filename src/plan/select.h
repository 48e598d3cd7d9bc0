/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select: which GPUs and MIG devices of an inventory the device words of a request refer to (SPEC
 * libnvidia-container 7.2, 7.3). Pure. Fails closed: an unknown word is an error ("<word>: unknown
 * device") and selects nothing.
 */
#ifndef GRAFT_PLAN_SELECT_H
#define GRAFT_PLAN_SELECT_H

#include "base/arena.h"
#include "base/error.h"
#include "host/inventory.h"
#include "request/request.h"

struct graft_selected_mig {
	const struct graft_gpu *gpu;
	const struct graft_mig_device *mig;
};

struct graft_selection {
	const struct graft_gpu **gpus; /* in selection order, each once */
	size_t n_gpus;
	struct graft_selected_mig *migs;
	size_t n_migs;
	bool all;
	const struct graft_gpu **mig_config_gpus, **mig_monitor_gpus; /* those that support MIG, if requested */
	size_t n_mig_config_gpus, n_mig_monitor_gpus;
};

/*
 * Returns the facts that the inventory lacks and without which a word cannot be resolved (bits of
 * enum graft_nvml_fact: GRAFT_NVML_UUID for a UUID if some GPU's UUID is unknown and no known one
 * matches; GRAFT_NVML_MIG likewise). 0 if graft_select() can decide.
 */
unsigned int graft_select_missing_facts(const struct graft_inventory *inventory, const struct graft_request *request);

/*
 * Likewise for facts without which a plan for the selection would be incomplete: which of the
 * selected MIG devices do graphics, if the GPU has display nodes and its model has such profiles.
 */
unsigned int graft_plan_missing_facts(const struct graft_request *request, const struct graft_selection *selection);

/*
 * Selects. If the inventory has no GPU at all, nothing is validated (SPEC libnvidia-container 3.5
 * step 7); only on a Tegra board, whose driver lists none, a word must be "all" or 0. Returns -1
 * with GRAFT_UNKNOWN_DEVICE; for mig-config or mig-monitor with specific MIG devices, with
 * GRAFT_INVALID "all: cannot enable mig-config with specific MIG devices selected"; or
 * with GRAFT_NO_MEMORY. The error names its step.
 */
int graft_select(const struct graft_inventory *inventory, const struct graft_request *request,
		 struct graft_arena *arena, struct graft_selection *ret_selection, struct graft_error *err);

#endif
