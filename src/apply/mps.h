/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps: one MPS control daemon: its directories, its start, commands to it, and the compute mode of
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
	const char *path;    /* directories of programs below it, separated by colons */
	const char *devices; /* UUIDs that it serves, separated by commas; NULL = those that it sees */
	const char *pipe;    /* directory through which programs find it */
	const char *log;     /* directory of control.log and server.log */
	const char *shm;     /* mounted at its /dev/shm; NULL = it uses the host's */
	struct graft_arena *arena;
};

/*
 * The driver's programs run as on the system that they were installed for: if the driver root has a
 * loader, it becomes their root directory, in a mount namespace of their own.
 *
 * All return 0, or -1 with GRAFT_NOT_FOUND if the driver lacks the program, GRAFT_TIMEOUT if it
 * does not answer, GRAFT_PROGRAM with its output if it fails, or a system error.
 */

/*
 * Mounts a tmpfs of that size ("1G") at a directory, which is created if missing, unless a tmpfs is
 * mounted there. Returns 1 if it was mounted.
 */
int graft_mps_mount(const char *shm, const char *size, struct graft_arena *arena, struct graft_error *err);
/*
 * Makes the directories, which every user can enter; `shm` is a tmpfs of that size ("1G"). Without
 * permission to mount, mps->shm becomes NULL, and the daemon uses the host's.
 */
int graft_mps_make_directories(struct graft_mps *mps, const char *shm_size, struct graft_error *err);
/*
 * Gives this process a mount namespace of its own, with `shm` at /dev/shm. Does nothing if it is
 * mounted there already.
 */
int graft_mps_enter(const char *shm, struct graft_error *err);
/* Unmounts `shm`. */
void graft_mps_unmount(const struct graft_mps *mps);
/* Starts the daemon and waits until it answers. */
int graft_mps_start(const struct graft_mps *mps, struct graft_error *err);
/* Sends the daemon a command and returns its answer, in the arena. */
int graft_mps_ask(const struct graft_mps *mps, const char *command, const char **ret_answer, struct graft_error *err);
/*
 * Sets the limits of each program: a percentage of the multiprocessors, and memory of each of the
 * daemon's devices, which it numbers from 0.
 */
int graft_mps_limit(const struct graft_mps *mps, uint32_t percent, const uint32_t *mib, size_t n_devices,
		    struct graft_error *err);
/*
 * Returns the daemon's PID, or 0 if it does not run. SECURITY: it is found by examining all
 * processes. The file next to its socket is not read, because programs that share the GPU may write
 * to that directory.
 */
pid_t graft_mps_pid(const struct graft_mps *mps);
/* Returns whether that process is the daemon and still runs. */
bool graft_mps_has_pid(const struct graft_mps *mps, pid_t pid);
/* Stops the daemon and waits for it to end; kills it if it does not. */
int graft_mps_quit(const struct graft_mps *mps, struct graft_error *err);

/* Returns the compute mode of a GPU, as nvidia-smi spells it. */
int graft_mps_read_mode(const struct graft_mps *mps, const char *gpu, const char **ret_mode, struct graft_error *err);
int graft_mps_set_mode(const struct graft_mps *mps, const char *gpu, const char *mode, struct graft_error *err);

#endif
