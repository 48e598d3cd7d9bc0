/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_host: what the NRI plugin knows of the host: driver, GPUs, files, and the CDI specifications
 * that pods may name. Another process reads the host, as NVML may take half a minute and containers
 * do not wait; until it has answered, what was known before counts.
 *
 * It is read again when the hardware or the driver's modules change, or a specification does.
 * While a container waits, the host is not searched.
 */
#ifndef GRAFT_DAEMON_NRI_HOST_H
#define GRAFT_DAEMON_NRI_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/hardware.h"
#include "kubernetes/nri_container.h"
#include "rpc/loop.h"

struct nri_host {
	struct graft_loop *loop;
	const struct graft_log *log;
	const struct graft_nri_policy *policy; /* the root that is read, and which specifications */
	void (*renewed)(void *arg);            /* something new is known; called from the loop */
	void *arg;

	/* What is known. `inventory` NULL: nothing yet. One without GPUs has the reason in `why`. */
	struct graft_inventory *inventory; /* owned */
	struct graft_error why;
	struct graft_arena *arena; /* of the registry */
	struct graft_cdi_registry registry;
	uint64_t n_reads;

	struct hardware hardware;
	struct graft_loop_watch folders; /* inotify of the directories of specifications */
	struct graft_loop_timer soon;    /* reads again, a moment after the last event */
	/* The process that reads. */
	pid_t pid;
	struct graft_loop_watch watch;
	struct graft_buffer answer;
	bool again; /* it was to be read again meanwhile */
};

/*
 * Begins to read, and to watch. `loop`, `log`, `policy`, `renewed` and `arg` are set; the host does
 * not move afterwards. What cannot be read is in `why`.
 */
void nri_host_begin(struct nri_host *host);
/* Reads again; `renewed` is called when that is done. */
void nri_host_renew(struct nri_host *host);
/* The same after the policy has changed. */
void nri_host_reload(struct nri_host *host);
/* As data for a decision; false if nothing is known yet. */
bool nri_host_is_known(const struct nri_host *host, struct graft_nri_host *ret_host);
/* Frees everything. Does nothing if it has not begun. */
void nri_host_done(struct nri_host *host);

#endif
