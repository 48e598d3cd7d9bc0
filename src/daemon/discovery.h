/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery: keeps the labels of this node up to date: where they are written, and which events
 * cause an update (SPEC kubernetes 8.1). The labels themselves are src/kubernetes' work.
 *
 * Idle while nothing happens, with one exception: while a GPU is in MIG mode, it reads the driver's
 * list of MIG devices once per interval, because nothing reports changes of that list.
 */
#ifndef GRAFT_DAEMON_DISCOVERY_H
#define GRAFT_DAEMON_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/hardware.h"
#include "daemon/health.h"
#include "daemon/node_feature.h"
#include "kubernetes/kube_config.h"
#include "rpc/loop.h"

struct discovery {
	struct graft_loop *loop;
	const struct graft_log *log;
	struct graft_kube_sources sources; /* of the configuration */
	int64_t timestamp;                 /* seconds since 1970, when the program was started */

	/* The discovery's own. */
	struct graft_arena *arena; /* of the configuration and the labels as they are */
	struct graft_kube_config config;
	const char *text;               /* the labels; NULL: none yet */
	int64_t interval_ms;            /* -1: labels are made once */
	int64_t changed_ms;             /* when they were changed last */
	bool look_again;                /* something may change without an event */
	bool event;                     /* `again` is due because of one */
	struct node_feature feature;    /* sends the labels to the API server, if configured */
	bool waits;                     /* fail-on-init-error is off, according to what was read so far */
	struct graft_error err;         /* why the loop has ended, if it is not GRAFT_OK */
	struct health health;           /* reads the kernel log */
	struct hardware hardware;       /* events of PCI devices, modules and device nodes */
	struct graft_loop_watch events; /* inotify: configuration, output, capability nodes */
	int output_watch;               /* which of them watches the output; -1: none */
	struct graft_loop_timer again;  /* makes the labels again */
};

/*
 * Reads configuration and host, and computes and writes the labels. The caller has set `loop`,
 * `log`, `sources` and `timestamp`. Then, unless labels are written only once, waits for events
 * that change them and, unless `fail_on_init_error`, for a missing driver. Returns 0 if the loop
 * must run, 1 if nothing is left to do, or -1 with the error set; call discovery_done() in each
 * case.
 */
int discovery_begin(struct discovery *discovery, struct graft_error *err);
/* Repeats this after SIGHUP, and asks NVML again. If that fails, the labels stay as they are. */
void discovery_reload(struct discovery *discovery);
/* Removes the file, unless it must stay, and frees everything. */
void discovery_done(struct discovery *discovery);

#endif
