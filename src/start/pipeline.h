/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: the stages up to the plan, in the order that a container start needs. Looks up no more
 * of the host than the request can use, and asks NVML only for facts that a decision depends on.
 * Errors name their step (SPEC libnvidia-container 3.5); nothing is printed.
 */
#ifndef GRAFT_START_PIPELINE_H
#define GRAFT_START_PIPELINE_H

#include "base/error.h"
#include "host/discover.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/select.h"
#include "request/request.h"

struct graft_pipeline {
	struct graft_host_options host;
	bool replay;                                /* the inventory came from a file: do not look at the host */
	struct graft_inventory *inventory;          /* owned */
	struct graft_selection selection;           /* in the request's arena */
	void (*phase)(void *arg, const char *name); /* called at the end of each phase; may be NULL */
	/*
	 * Called around NVML (true before, false after), to change capabilities; may be NULL.
	 * Negative: failed.
	 */
	int (*nvml)(void *arg, bool begin, struct graft_error *err);
	void *arg;
};

/*
 * The parts of the host (bits of enum graft_need) that a container with this request can use, for a
 * plan of that style.
 */
unsigned int graft_pipeline_needs(const struct graft_request *request, enum graft_style style);
/*
 * Sets the options of discovery that follow from a request. They point into the request, which must
 * outlive them.
 */
void graft_pipeline_host_options(const struct graft_request *request, struct graft_host_options *options);
/*
 * Logs the first lines of a debug log: the version and what will be used (SPEC libnvidia-container
 * 2.5 step 4, 3.8).
 */
void graft_pipeline_log_start(const struct graft_host_options *host);
/*
 * Reads the host into pipeline->inventory; does nothing in a replay. -1: as graft_host_discover().
 */
int graft_pipeline_discover(struct graft_pipeline *pipeline, unsigned int needs, struct graft_error *err);
/*
 * Adds these facts (bits) to the inventory by asking NVML. -1: as graft_host_complete(); GRAFT_NVML
 * in a replay, where NVML cannot be asked.
 */
int graft_pipeline_complete(struct graft_pipeline *pipeline, unsigned int facts, struct graft_error *err);
/*
 * Selects the devices of the request; then checks its requirements. Both ask NVML where a fact is
 * missing. -1: as graft_select(), graft_plan_check_requirements() and graft_pipeline_complete().
 */
int graft_pipeline_select(struct graft_pipeline *pipeline, struct graft_request *request, struct graft_error *err);
int graft_pipeline_require(struct graft_pipeline *pipeline, struct graft_request *request, struct graft_error *err);
/*
 * The policy for a container whose image is unknown: an ordinary glibc image with a procfs of this
 * kernel.
 */
struct graft_policy graft_pipeline_default_policy(const struct graft_inventory *inventory);
/*
 * Looks up the rest of the selected GPUs and makes the plan, which the caller frees. -1: as
 * graft_host_look_at_gpus(), graft_pipeline_complete() and graft_plan_make().
 */
int graft_pipeline_plan(struct graft_pipeline *pipeline, const struct graft_request *request,
			const struct graft_policy *policy, struct graft_plan **ret_plan, struct graft_error *err);
/* Frees the inventory. */
void graft_pipeline_done(struct graft_pipeline *pipeline);

#endif
