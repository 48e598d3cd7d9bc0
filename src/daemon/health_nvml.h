/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health_nvml: NVML as a second source of health (SPEC kubernetes 6.8): runs a child that waits for
 * its events (host/nvml_watch.h), and passes its reports to health.h. A failing child makes no GPU
 * unhealthy; it is restarted at growing intervals.
 */
#ifndef GRAFT_DAEMON_HEALTH_NVML_H
#define GRAFT_DAEMON_HEALTH_NVML_H

#include "daemon/health.h"
#include "host/nvml_watch.h"
#include "kubernetes/kube_config.h"
#include "rpc/loop.h"

struct health_nvml {
	struct graft_loop *loop; /* NULL: it has not begun */
	const struct graft_log *log;
	struct health *health;
	const struct graft_kube_flags *flags;    /* borrowed */
	const struct graft_inventory *inventory; /* borrowed */
	struct graft_nvml_watch child;
	bool running; /* it has not ended by itself */
	bool failed;  /* this was logged */
	struct graft_loop_watch watch;
	struct graft_loop_timer again;
	int64_t delay_ms; /* until the next child; 0: the last one did not fail */
	char line[GRAFT_NVML_TEXT_MAX + 64];
	size_t n_line;
};

/* Begins to watch the GPUs of an inventory. Borrowed values must live until health_nvml_done(). */
void health_nvml_begin(struct health_nvml *nvml, struct health *health, const struct graft_kube_flags *flags,
		       const struct graft_inventory *inventory);
/*
 * Ends it, but keeps its reports: health_nvml_begin() follows, whose child reports for each GPU
 * whether it answers. Does nothing if it has not begun.
 */
void health_nvml_pause(struct health_nvml *nvml);
/*
 * Ends it, and forgets the GPUs that did not answer. Does nothing if it has not begun.
 */
void health_nvml_done(struct health_nvml *nvml);
/* Returns whether NVML is being queried. */
bool health_nvml_runs(const struct health_nvml *nvml);

#endif
