/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps_daemon: the MPS daemon of one resource (SPEC kubernetes 9): its start, its end and its log.
 * Knows neither configuration nor other daemons.
 *
 *	ROOT/.lock		held by the process whose daemons these are
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
 * Mounts the shared memory of all daemons, at most half of the host's memory, unless it is mounted.
 * Returns 1 if it mounts it, 0 if not, or -1 with the error set.
 */
int mps_host_mount(const struct mps_host *host, struct graft_error *err);
void mps_host_unmount(const struct mps_host *host);
/*
 * Creates the directory of all daemons, and locks it until *ret_fd is closed. Returns 0, or -1 with
 * GRAFT_BUSY if another process has the lock.
 */
int mps_host_lock(const struct mps_host *host, int *ret_fd, struct graft_error *err);
/* Gives it back, and leaves no file. */
void mps_host_unlock(const struct mps_host *host, int take_fd);

struct mps_daemon {
	const struct mps_host *host;
	struct graft_arena *arena;
	const char *text; /* `plan` as JSON: equal texts mean equal daemons */
	struct graft_kube_mps_daemon plan;
	const char *directory;
	bool running; /* as far as is known */

	/* The daemon's own. */
	pid_t pid;                       /* 0 = not known */
	struct graft_loop_watch process; /* pidfd */
	struct graft_loop_timer look;    /* where there is none */
	struct graft_loop_watch events;  /* inotify, of its log */
	int log_fd;
	off_t trimmed_at; /* length of the log when the copied part was last freed */
};

/*
 * Makes a daemon from a copy of `plan`, without starting it. NULL: out of memory.
 */
struct mps_daemon *mps_daemon_new(const struct mps_host *host, const struct graft_kube_mps_daemon *plan);
/*
 * Makes one from the file that an earlier process left below `resource`. Returns NULL if the file
 * is missing or unreadable.
 */
struct mps_daemon *mps_daemon_find(const struct mps_host *host, const char *resource);
/* Frees it, and returns NULL. A running daemon keeps running. */
struct mps_daemon *mps_daemon_free(struct mps_daemon *daemon);

/* Adopts the daemon if an earlier process has started it and it still runs. */
bool mps_daemon_adopt(struct mps_daemon *daemon);
/* Starts it. Returns 0, or -1 with the error set and nothing left behind. */
int mps_daemon_start(struct mps_daemon *daemon, struct graft_error *err);
/* Ends it, which ends its programs, and removes its files. */
void mps_daemon_stop(struct mps_daemon *daemon);

#endif
