/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps_daemons: all MPS daemons of this node: which ones configuration and host require, and when a
 * failed step is tried again.
 */
#ifndef GRAFT_DAEMON_MPS_DAEMONS_H
#define GRAFT_DAEMON_MPS_DAEMONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "daemon/hardware.h"
#include "daemon/mps_daemon.h"
#include "kubernetes/kube_config.h"
#include "rpc/loop.h"

#define MPS_ROOT_IN_CONTAINER "/mps"
#define MPS_ROOT_DEFAULT      "/run/nvidia/mps"

/* Returns the directory of the daemons, as this process sees it. */
const char *mps_root(const struct graft_kube_config *config);

struct mps_daemons {
	struct graft_loop *loop;
	const struct graft_log *log;
	struct graft_kube_sources sources; /* of the configuration */
	int output_fd;                     /* where the daemons' logs are copied */
	bool waits;                        /* fail-on-init-error is off, according to what was read so far */

	/* Its own. */
	struct graft_arena *arena; /* of places */
	struct mps_host host;
	struct mps_daemon **items;
	size_t n_items;
	int lock_fd;   /* of the lock file; 0: not locked */
	bool mounted;  /* by this process */
	bool complete; /* everything that is configured runs */
	struct hardware hardware;
	struct graft_loop_timer again;
	int64_t delay_ms;   /* of `again`, after a failure */
	int64_t pause_ms;   /* of `again`, after a daemon has ended by itself */
	int64_t started_ms; /* when one was started last */
};

/*
 * Reads configuration and host, ends the unwanted daemons of earlier processes, and starts the
 * missing ones. The caller has set all members but the daemons' own. Without `fail_on_init_error`,
 * failed steps are tried again later. Returns 0, or -1 with the error set; call mps_daemons_done()
 * in each case.
 */
int mps_daemons_begin(struct mps_daemons *daemons, struct graft_error *err);
/* The same again. Failed steps are tried again later; until then, running daemons keep running. */
void mps_daemons_reload(struct mps_daemons *daemons);
/* Ends all daemons and frees everything. */
void mps_daemons_done(struct mps_daemons *daemons);

#endif
