/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps_daemon: the MPS daemon of one resource (SPEC kubernetes 9): its start, its end, and what it
 * writes to its log. Knows neither configuration nor other daemons.
 *
 *	ROOT/shm		/dev/shm of all daemons and their programs
 *	ROOT/RESOURCE/	pipe	what programs get
 *			log
 *			.started	while programs are served
 *			.daemon		as JSON, what it was started with: from before its start to after its end
 */
#ifndef GRAFT_DAEMON_MPS_DAEMON_H
#define GRAFT_DAEMON_MPS_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"
#include "kubernetes/kube_mps.h"
#include "rpc/loop.h"

struct mps_host {
	struct graft_loop *loop;
	const struct graft_log *log;
	const char *root;        /* directory of all daemons */
	const char *driver_root; /* as this process sees it */
	int output_fd;           /* where the daemons' logs are copied; -1: nowhere */
	/* Called from the loop when a daemon has ended without mps_daemon_stop(). */
	void (*ended)(void *arg);
	void *arg;
};

/*
 * Mounts the shared memory of all daemons, half of the host's memory at most, unless it is there.
 * Returns 1 if it was mounted, 0, or -1 with the error set.
 */
int mps_host_mount(const struct mps_host *host, struct graft_error *err);
void mps_host_unmount(const struct mps_host *host);
/*
 * Makes the directory of all daemons and locks it, as long as *ret_fd is open. Returns 0, or -1:
 * GRAFT_BUSY if another process has it.
 */
int mps_host_lock(const struct mps_host *host, int *ret_fd, struct graft_error *err);
struct mps_daemon {
	const struct mps_host *host;
	struct graft_arena *arena;
	const char *text; /* `plan` as JSON: equal texts, equal daemons */
	struct graft_kube_mps_daemon plan;
	const char *directory;
	bool running; /* as far as is known */

	/* The daemon's own. */
	pid_t pid;                       /* 0 = not known */
	struct graft_loop_watch process; /* pidfd */
	struct graft_loop_timer look;    /* where there is none */
	struct graft_loop_watch events;  /* inotify, of its log */
	int log_fd;
	off_t trimmed_at; /* length of the log when the memory of what was copied was given back */
};

/*
 * Makes a daemon, which is not started, from `plan`, of which nothing is kept. Returns NULL without
 * memory.
 */
struct mps_daemon *mps_daemon_new(const struct mps_host *host, const struct graft_kube_mps_daemon *plan);
/*
 * Makes one from the file that an earlier process has left below `resource`. Returns NULL if that
 * file is missing or cannot be read.
 */
struct mps_daemon *mps_daemon_find(const struct mps_host *host, const char *resource);
/* Frees it, and returns NULL. What runs keeps running. */
struct mps_daemon *mps_daemon_free(struct mps_daemon *daemon);

/* Looks whether the daemon runs, from an earlier process, and goes on with it. */
bool mps_daemon_adopt(struct mps_daemon *daemon);
/* Starts it. Returns 0, or -1 with the error set; nothing is left then. */
int mps_daemon_start(struct mps_daemon *daemon, struct graft_error *err);
/* Ends it, which ends its programs, and removes what is only there while it runs. */
void mps_daemon_stop(struct mps_daemon *daemon);

#endif
