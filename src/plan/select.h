/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select: which GPUs and MIG devices of an inventory the words of a request mean (SPEC libnvidia-container 7.2-7.3).
 * Pure. Fails closed: an unknown word is an error ("<word>: unknown device") and selects nothing.
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
	const struct graft_gpu **mig_config_gpus, **mig_monitor_gpus; /* MIG-capable ones, when asked for */
	size_t n_mig_config_gpus, n_mig_monitor_gpus;
};

/*
 * Facts that the inventory lacks and without which a word cannot be decided (bits of enum graft_nvml_fact: GRAFT_NVML_UUID for a UUID
 * word when some GPU's UUID is unknown and no known one matches; GRAFT_NVML_MIG likewise). 0 = graft_select() can decide.
 */
unsigned int graft_select_missing_facts(const struct graft_inventory *inventory, const struct graft_request *request);

/*
 * Facts without which a plan for the selection would lack something, likewise: which of the selected MIG devices do graphics, where the GPU has display nodes and
 * its model has such profiles.
 */
unsigned int graft_plan_missing_facts(const struct graft_request *request, const struct graft_selection *selection);
/* Whether the MIG device does graphics, as far as is known. */
bool graft_mig_does_graphics(const struct graft_mig_device *mig);

/*
 * Selects; with no GPU at all in the inventory nothing is validated (SPEC 3.5 step 7). Errors: GRAFT_UNKNOWN_DEVICE, context "device error" is
 * the caller's; for mig-config with specific MIG devices: GRAFT_INVALID, message "cannot enable mig-config with specific MIG devices selected".
 * *ret_prefix is set to the step's prefix ("device error", "mig-config error", "mig-monitor error").
 */
int graft_select(const struct graft_inventory *inventory, const struct graft_request *request,
		 struct graft_arena *arena, struct graft_selection *ret_selection, const char **ret_prefix,
		 struct graft_error *err);

#endif
