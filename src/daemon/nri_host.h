/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_host: what the NRI plugin knows about the host: driver, GPUs, files, and the CDI
 * specifications that pods may name. Another process reads the host, because NVML may take half a
 * minute; a container's request never searches the host here.
 *
 * It is read again when the hardware, the driver's modules or a specification change. After such an
 * event nothing counts as known until a later reading has ended: after the driver was reloaded, a
 * device number can belong to another GPU.
 */
#ifndef GRAFT_DAEMON_NRI_HOST_H
#define GRAFT_DAEMON_NRI_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/hardware.h"
#include "kubernetes/kube_question.h"
#include "kubernetes/nri_container.h"
#include "rpc/loop.h"

struct nri_host {
	struct graft_loop *loop;
	const struct graft_log *log;
	const struct graft_nri_policy *policy; /* the root that is read, and which specifications */
	void (*renewed)(void *arg);            /* something new is known; called from the loop */
	void *arg;
	unsigned int limit_s; /* that a reading may take; 0: the default */

	/* The facts. `inventory` NULL: none yet. If it has no GPUs, `why` is the reason. */
	struct graft_inventory *inventory; /* owned */
	struct graft_error why;
	struct graft_arena *arena; /* of the registry */
	struct graft_cdi_registry registry;
	uint64_t n_reads;

	/* Each reason to read has a number. */
	uint64_t asked;   /* the last reason of all */
	uint64_t changed; /* the last that was a change of the host */
	uint64_t begun;   /* `asked` when the current reading began */
	uint64_t known;   /* the same for the last one that has ended */

	struct hardware hardware;
	struct graft_loop_watch folders; /* inotify of the directories of specifications */
	struct graft_loop_timer soon;    /* reads again, a moment after the last event */
	/* The process that reads. */
	struct graft_kube_question question;
	struct graft_loop_watch watch; /* of its answer; `place` 0: none */
};

/*
 * Begins to read and to watch. The caller has set `loop`, `log`, `policy`, `renewed` and `arg`; the
 * host must not move afterwards. Errors of reading are in `why`.
 */
void nri_host_begin(struct nri_host *host);
/*
 * Starts another reading and returns its number, for nri_host_is_known(). Calls `renewed` when the
 * reading has ended.
 */
uint64_t nri_host_renew(struct nri_host *host);
/* The same after the policy has changed. */
void nri_host_reload(struct nri_host *host);
/*
 * Returns the facts as data for a decision; false if there are none yet, the host has changed
 * since, or the reading `number` has not ended. Then `renewed` follows, unless reading keeps
 * failing.
 */
bool nri_host_is_known(struct nri_host *host, uint64_t number, struct graft_nri_host *ret_host);
/* Frees everything. Does nothing if it has not begun. */
void nri_host_done(struct nri_host *host);

#endif
