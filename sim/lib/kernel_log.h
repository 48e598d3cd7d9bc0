/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_log: the kernel log of the simulated host, a file that SIMULATED_KMSG names or the one
 * that graft-sim makes. A process that writes a line of the driver into it changes the health of a
 * GPU:
 *
 *	NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
 *	NVRM: Xid (PCI:0000:41:00 GPU-I:02 GPU-CI:00): 43, ...
 *	NVRM: GPU 0000:1b:00.0: GPU reset
 *	graft-sim: GPU 0000:1b:00.0: MIG mode 1
 *	graft-sim: GPU 0000:1b:00.0: compute mode 3
 *
 * A prefix is allowed, such as the prefix of /dev/kmsg or a time. After Xid 79 a GPU is lost until
 * it is reset. Before Hopper, a new MIG mode waits for a reset. No driver logs MIG modes or compute
 * modes: 0 is the default, 3 EXCLUSIVE_PROCESS.
 */
#ifndef GRAFT_SIM_KERNEL_LOG_H
#define GRAFT_SIM_KERNEL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_KERNEL_LOG "/run/graft-sim/kmsg"
#define SIM_XID_LOST   79u
#define SIM_NO_MIG     UINT32_MAX

struct sim_log_event {
	enum { SIM_LOG_OTHER, SIM_LOG_XID, SIM_LOG_RESET, SIM_LOG_MIG, SIM_LOG_COMPUTE } kind;
	uint32_t gpu;    /* index in sim_data.gpus */
	uint32_t xid;    /* or the mode */
	uint32_t gi, ci; /* SIM_NO_MIG if the line has none */
};

/* Returns the name of the log; it need not exist. */
const char *sim_log_path(void);

/* Parses one line, without its newline. SIM_LOG_OTHER if it is not about a GPU of this host. */
struct sim_log_event sim_log_parse(const char *line);

/*
 * Returns whether a GPU has fallen off the bus, because of a fault of the topology or according to
 * the log.
 */
bool sim_gpu_lost(uint32_t index);

/* Returns whether a GPU is in MIG mode; *ret_pending, if not NULL: whether it is after the next reset. */
bool sim_gpu_mig(uint32_t index, bool *ret_pending);

/* Returns the compute mode of a GPU. */
uint32_t sim_gpu_compute_mode(uint32_t index);

/*
 * Append a line to the log: that a GPU was reset, after which newer drivers say that it needs no more
 * recovery if it did; that it gets another MIG mode, or compute mode. Return false if that is not permitted.
 */
bool sim_log_reset(uint32_t index);
bool sim_log_mig(uint32_t index, bool on);
bool sim_log_compute_mode(uint32_t index, uint32_t mode);

#endif
