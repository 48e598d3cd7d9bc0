/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_log: lines of the driver in a file. The state that follows from the whole file is kept
 * until it grows; a FIFO has no past, so only processes that wait at it learn anything.
 */
#include "kernel_log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "visible.h"

const char *sim_log_path(void)
{
	const char *path = secure_getenv("SIMULATED_KMSG");

	return path && path[0] != '\0' ? path : SIM_KERNEL_LOG;
}

static bool find_gpu(unsigned int domain, unsigned int bus, unsigned int device, uint32_t *ret_index)
{
	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		const volatile struct sim_data_gpu *gpu = &sim_data.gpus[i];

		*ret_index = i;
		if (gpu->domain == domain && gpu->bus == bus && gpu->device == device)
			return true;
	}
	return false;
}

/* Reads a number after `before`, which is required; *ret_end is what follows. */
static bool read_number_after(const char *at, const char *before, int base, unsigned int *ret_number,
			      const char **ret_end)
{
	size_t length = strlen(before);
	char *end;
	unsigned long number;

	if (strncmp(at, before, length) != 0)
		return false;
	number = strtoul(at + length, &end, base);
	*ret_number = (unsigned int)number;
	*ret_end = end;
	return end != at + length && number <= UINT_MAX;
}

static bool read_address(const char *at, const char *before, unsigned int *ret_gpu)
{
	unsigned int domain, bus, device;

	return read_number_after(at, before, 16, &domain, &at) && read_number_after(at, ":", 16, &bus, &at) &&
	       read_number_after(at, ":", 16, &device, &at) && find_gpu(domain, bus, device, ret_gpu);
}

/* Lines that no driver writes: what the mode is of, and its number. */
#define OWN_LINE     "graft-sim: GPU "
#define MIG_MODE     "MIG mode "
#define COMPUTE_MODE "compute mode "

static bool read_mode(const char *line, const char *what, struct sim_log_event *event)
{
	const char *own = strstr(line, OWN_LINE), *number = own ? strstr(own, what) : NULL, *end;

	return number && read_number_after(number, what, 10, &event->xid, &end) &&
	       read_address(own, OWN_LINE, &event->gpu);
}

struct sim_log_event sim_log_parse(const char *line)
{
	struct sim_log_event event = { .kind = SIM_LOG_OTHER, .gi = SIM_NO_MIG, .ci = SIM_NO_MIG };
	const char *xid = strstr(line, "NVRM: Xid ("), *reset = strstr(line, "NVRM: GPU "), *number, *end;

	if (reset && strstr(reset, "GPU reset") && read_address(reset, "NVRM: GPU ", &event.gpu))
		event.kind = SIM_LOG_RESET;
	if (read_mode(line, MIG_MODE, &event))
		event.kind = SIM_LOG_MIG;
	if (read_mode(line, COMPUTE_MODE, &event))
		event.kind = SIM_LOG_COMPUTE;
	if (!xid)
		return event;
	xid += strlen("NVRM: Xid (");
	if (strncmp(xid, "PCI:", 4) == 0) /* older drivers write the bare address */
		xid += 4;
	number = strstr(xid, "): ");
	if (!number || !read_number_after(number, "): ", 10, &event.xid, &end) || !read_address(xid, "", &event.gpu))
		return event;
	event.kind = SIM_LOG_XID;
	xid = strstr(xid, " GPU-I:");
	if (!xid || xid >= number)
		return event;
	if (!read_number_after(xid, " GPU-I:", 10, &event.gi, &end))
		event.gi = SIM_NO_MIG;
	else if (!read_number_after(end, " GPU-CI:", 10, &event.ci, &end))
		event.ci = SIM_NO_MIG;
	return event;
}

/* The state according to the log, as of its size at that time. */
static struct {
	off_t size;
	struct {
		bool lost, faulty, mig, pending_mig;
		uint32_t compute_mode;
	} gpus[SIM_MAX_GPUS];
} known;

/* Lower numbers are faults of applications. */
enum { HOPPER = 9, SIM_XID_OF_GPU = 46, SIM_XID_RECOVERY = 154 };

static void apply_line(const char *line)
{
	struct sim_log_event event = sim_log_parse(line);

	switch (event.kind) {
	case SIM_LOG_OTHER:
		break;
	case SIM_LOG_XID:
		known.gpus[event.gpu].faulty |= event.xid >= SIM_XID_OF_GPU && event.xid != SIM_XID_RECOVERY;
		known.gpus[event.gpu].lost |= event.xid == SIM_XID_LOST;
		break;
	case SIM_LOG_RESET:
		known.gpus[event.gpu].lost = known.gpus[event.gpu].faulty = false;
		known.gpus[event.gpu].mig = known.gpus[event.gpu].pending_mig;
		break;
	case SIM_LOG_MIG:
		known.gpus[event.gpu].pending_mig = event.xid == 1;
		if (sim_data.gpus[event.gpu].arch >= HOPPER)
			known.gpus[event.gpu].mig = event.xid == 1;
		break;
	case SIM_LOG_COMPUTE:
		known.gpus[event.gpu].compute_mode = event.xid;
		break;
	}
}

static void read_log(FILE *log)
{
	char line[1024];

	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		known.gpus[i].lost = known.gpus[i].faulty = false;
		known.gpus[i].compute_mode = 0;
		known.gpus[i].mig = known.gpus[i].pending_mig = sim_data.gpus[i].mig_enabled;
	}
	while (fgets(line, sizeof(line), log))
		apply_line(line);
}

/* Returns false if there is no log of the past. */
static bool update_known(void)
{
	struct stat status;
	FILE *log;

	if (stat(sim_log_path(), &status) < 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
		return false;
	if (status.st_size == known.size)
		return true;
	log = fopen(sim_log_path(), "re");
	if (!log)
		return false;
	known.size = status.st_size;
	read_log(log);
	(void)fclose(log);
	return true;
}

bool sim_gpu_lost(uint32_t index)
{
	return sim_data.gpus[index].lost || (update_known() && known.gpus[index].lost);
}

bool sim_gpu_mig(uint32_t index, bool *ret_pending)
{
	bool is_known = sim_data.gpus[index].mig_capable && update_known();

	if (ret_pending)
		*ret_pending = is_known ? known.gpus[index].pending_mig : sim_data.gpus[index].mig_enabled;
	return is_known ? known.gpus[index].mig : sim_data.gpus[index].mig_enabled;
}

uint32_t sim_gpu_compute_mode(uint32_t index)
{
	return update_known() ? known.gpus[index].compute_mode : 0;
}

static bool append(const char *line)
{
	int log = open(sim_log_path(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = log < 0 ? -1 : write(log, line, strlen(line));

	if (log >= 0)
		(void)close(log);
	return n > 0;
}

static bool tells_of_recovery(void)
{
	char version[8];

	(void)sim_copy(version, sizeof(version), sim_data.module_version);
	return strtoul(version, NULL, 10) >= 555;
}

bool sim_log_reset(uint32_t index)
{
	const volatile struct sim_data_gpu *gpu = &sim_data.gpus[index];
	char lines[256];
	int n = snprintf(lines, sizeof(lines), "NVRM: GPU %04x:%02x:%02x.0: GPU reset\n", gpu->domain, gpu->bus,
			 gpu->device);

	if (update_known() && known.gpus[index].faulty && tells_of_recovery())
		(void)snprintf(lines + n, sizeof(lines) - (size_t)n,
			       "NVRM: Xid (PCI:%04x:%02x:%02x): 154, GPU recovery action changed from 0x1 (GPU Reset "
			       "Required) to 0x0 (None)\n",
			       gpu->domain, gpu->bus, gpu->device);
	return append(lines);
}

static bool log_mode(uint32_t index, const char *what, uint32_t mode)
{
	const volatile struct sim_data_gpu *gpu = &sim_data.gpus[index];
	char line[96];

	(void)snprintf(line, sizeof(line), OWN_LINE "%04x:%02x:%02x.0: %s%u\n", gpu->domain, gpu->bus, gpu->device,
		       what, mode);
	return append(line);
}

bool sim_log_mig(uint32_t index, bool on)
{
	return log_mode(index, MIG_MODE, on);
}

bool sim_log_compute_mode(uint32_t index, uint32_t mode)
{
	return log_mode(index, COMPUTE_MODE, mode);
}
