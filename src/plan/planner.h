/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner: (inventory, request, policy) -> plan. Pure: no file is opened, no clock or environment is read; the same
 * values give the same bytes. SPEC libnvidia-container 9 for order, flags and targets.
 */
#ifndef GRAFT_PLAN_PLANNER_H
#define GRAFT_PLAN_PLANNER_H

#include "base/error.h"
#include "base/log.h"
#include "host/image.h"
#include "host/inventory.h"
#include "plan/plan.h"
#include "plan/select.h"
#include "request/request.h"

/* What the sink needs and may; not the container's choice. NULL strings = the defaults of SPEC 9.2. */
struct graft_policy {
	struct graft_image image; /* of the container's root; zeroed = unknown: a non-Debian glibc image */
	const char *bins_dir, *libs_dir, *libs32_dir, *cudart_dir;
	bool no_procfs_view; /* sinks that cannot mount a procfs view (CDI) */
	bool user_namespace; /* the container lives in a user namespace */
};
extern const struct graft_record graft_policy_record;

/*
 * Evaluates all requirements for the selection (SPEC 8: each selected GPU, then MIG devices, else once without a device). Returns 0 when
 * all hold; -1 with GRAFT_REQUIREMENT; 1 when NVML facts are needed first: *ret_missing gets the bits (GRAFT_NVML_ARCH, BRAND, CUDA).
 */
int graft_plan_check_requirements(const struct graft_inventory *inventory, const struct graft_request *request,
				  const struct graft_selection *selection, unsigned int *ret_missing,
				  struct graft_error *err);

/* Makes the plan. The selection must come from the same inventory. Strings are copied: the plan stands alone. */
int graft_plan_make(const struct graft_inventory *inventory, const struct graft_request *request,
		    const struct graft_policy *policy, const struct graft_selection *selection,
		    struct graft_plan **ret_plan, struct graft_error *err);

#endif
