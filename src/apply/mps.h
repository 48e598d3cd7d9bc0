/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps: one MPS control daemon: its directories, its start, questions to it, and the compute mode of
 * the GPUs that it serves. Runs the driver's own programs; knows neither leases nor Kubernetes.
 */
#ifndef GRAFT_APPLY_MPS_H
#define GRAFT_APPLY_MPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

/* In the directory of logs. */
#define GRAFT_MPS_LOG        "control.log"
#define GRAFT_MPS_SERVER_LOG "server.log"

#define GRAFT_MPS_EXCLUSIVE "EXCLUSIVE_PROCESS"
#define GRAFT_MPS_SHARED    "DEFAULT"

struct graft_mps {
	const char *root;    /* driver root; NULL or "" = "/" */
	const char *path;    /* directories of programs below it, with colons between */
	const char *devices; /* UUIDs that it serves, separated by commas; NULL = those that it sees */
	const char *pipe;    /* directory through which programs find it */
	const char *log;     /* directory of control.log and server.log */
	const char *shm;     /* mounted at its /dev/shm; NULL = it has the host's */
	struct graft_arena *arena;
};

/*
 * The driver's programs run as on its own system: where the driver root has a loader, it becomes
 * their root directory, in mounts of their own.
 *
 * All return 0, or -1 with GRAFT_NOT_FOUND if the driver lacks the program, GRAFT_TIMEOUT if it
 * does not answer, GRAFT_PROGRAM with what it said if it fails, or an error of the system.
 */

/*
 * Mounts a tmpfs of that size ("1G") at a directory, which is made, unless one is mounted there.
 * Returns 1 if it was mounted.
 */
int graft_mps_mount(const char *shm, const char *size, struct graft_arena *arena, struct graft_error *err);
/*
 * Makes the directories, for everybody to enter; `shm` is a tmpfs of that size ("1G"). Where
 * nothing may be mounted, there is none, mps->shm becomes NULL, and the daemon has the host's.
 */
int graft_mps_make_directories(struct graft_mps *mps, const char *shm_size, struct graft_error *err);
/*
 * Gives this process a mount namespace of its own, with `shm` at /dev/shm. Does nothing if that is
 * there already.
 */
int graft_mps_enter(const char *shm, struct graft_error *err);
/* Unmounts `shm`. */
void graft_mps_unmount(const struct graft_mps *mps);
/* Starts the daemon and waits until it answers. */
int graft_mps_start(const struct graft_mps *mps, struct graft_error *err);
/* Gives the daemon a command, and returns what it answers, in the arena. */
int graft_mps_ask(const struct graft_mps *mps, const char *command, const char **ret_answer, struct graft_error *err);
/*
 * Sets the bounds of each program: a percentage of the processors, and memory of each of the
 * daemon's devices, which it counts from 0.
 */
int graft_mps_limit(const struct graft_mps *mps, uint32_t percent, const uint32_t *mib, size_t n_devices,
		    struct graft_error *err);
/*
 * The daemon's process; 0: there is none. SECURITY: it is found among all processes. The file
 * beside its socket is not read: programs that share the GPU may write to that directory.
 */
pid_t graft_mps_pid(const struct graft_mps *mps);
/* Returns whether that process is the daemon, and lives. */
bool graft_mps_has_pid(const struct graft_mps *mps, pid_t pid);
/* Makes the daemon end, and waits until it has; kills it if it does not. */
int graft_mps_quit(const struct graft_mps *mps, struct graft_error *err);

/* The compute mode of a GPU, as nvidia-smi spells it. */
int graft_mps_read_mode(const struct graft_mps *mps, const char *gpu, const char **ret_mode, struct graft_error *err);
int graft_mps_set_mode(const struct graft_mps *mps, const char *gpu, const char *mode, struct graft_error *err);

#endif
