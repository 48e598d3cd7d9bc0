/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: the stages up to the plan in the order in which a container start needs them, asking the host for no more than the request
 * can use, and NVML only for a fact without which nothing can be decided. Errors come with the prefix of the step
 * (SPEC libnvidia-container 3.5); nothing is printed.
 */
#ifndef GRAFT_CLI_PIPELINE_H
#define GRAFT_CLI_PIPELINE_H

#include "base/error.h"
#include "host/discover.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/select.h"
#include "request/request.h"

struct cli_pipeline {
	struct graft_host_options host;
	bool replay;                                /* the inventory came from a file: the host must not be asked */
	struct graft_inventory *inventory;          /* owned */
	struct graft_selection selection;           /* in the request's arena */
	const char *prefix;                         /* of the step that failed */
	void (*phase)(void *arg, const char *name); /* told the end of each phase; may be NULL */
	/* Called around NVML (true before, false after), for capabilities; may be NULL. */
	int (*nvml)(void *arg, bool begin, struct graft_error *err);
	void *arg;
};

/* The parts of the host that a container with this request can use (bits of enum graft_need), for a plan of that style. */
unsigned int cli_needs(const struct graft_request *request, enum graft_style style);
/* The options of discovery that follow from a request, which must live on. */
void cli_request_host_options(const struct graft_request *request, struct graft_host_options *options);
/* The first lines of a debug log: version, and what will be used (SPEC libnvidia-container 2.5 step 4, 3.8). */
void cli_log_start(const struct graft_host_options *host);
/* Reads the host, or checks that the inventory that is there has what is needed. */
int cli_pipeline_discover(struct cli_pipeline *pipeline, unsigned int needs, struct graft_error *err);
/* Gets facts from NVML. */
int cli_pipeline_complete(struct cli_pipeline *pipeline, unsigned int facts, struct graft_error *err);
/* Selects the devices of the request and checks its requirements. */
int cli_pipeline_select(struct cli_pipeline *pipeline, struct graft_request *request, struct graft_error *err);
int cli_pipeline_require(struct cli_pipeline *pipeline, struct graft_request *request, struct graft_error *err);
/* The policy for a container whose image is not known: an ordinary glibc image with a procfs of this kernel. */
struct graft_policy cli_default_policy(const struct graft_inventory *inventory);
/* Looks at the GPUs that were selected and makes the plan. */
int cli_pipeline_plan(struct cli_pipeline *pipeline, const struct graft_request *request,
		      const struct graft_policy *policy, struct graft_plan **ret_plan, struct graft_error *err);
/* Releases what it owns. */
void cli_pipeline_done(struct cli_pipeline *pipeline);

#endif
