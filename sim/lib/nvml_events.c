/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_events: event sets of the simulated libnvidia-ml.so.1, at which health checks of device
 * plugins wait. The events are the Xids in the kernel log.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel_log.h"
#include "nvml_parts.h"

#define STEP_MS 20u /* how long an event may take to arrive */

struct nvml_event_set {
	unsigned long long types[SIM_MAX_GPUS]; /* by index in nvml_state.gpus */
	int log; /* position after the content at the time when the set was made, or -1 */
	size_t n;
	char line[1024]; /* the part of a line that was read */
};

static unsigned long long supported_types(const struct nvml_handle *device)
{
	unsigned long long types = NVML_EVENT_PSTATE | NVML_EVENT_XID | NVML_EVENT_CLOCK;

	return device->gpu->display ? types : types | NVML_EVENT_SINGLE_BIT_ECC | NVML_EVENT_DOUBLE_BIT_ECC;
}

GIVE_NUMBER(nvmlDeviceGetSupportedEventTypes, nvml_check_gpu, unsigned long long, supported_types(device))

ENTRY(nvmlEventSetCreate, nvmlEventSet_t *set)
{
	if (nvml_state.references == 0)
		return NVML_UNINITIALIZED;
	if (!set)
		return NVML_INVALID_ARGUMENT;
	*set = calloc(1, sizeof(**set));
	if (!*set)
		return NVML_MEMORY;
	(*set)->log = open(sim_log_path(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if ((*set)->log >= 0)
		(void)lseek((*set)->log, 0, SEEK_END); /* a FIFO has no end to seek to */
	return NVML_SUCCESS;
}

ENTRY(nvmlEventSetFree, nvmlEventSet_t set)
{
	if (!set)
		return NVML_INVALID_ARGUMENT;
	if (set->log >= 0)
		(void)close(set->log);
	free(set);
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	nvmlReturn_t rc = nvml_check_gpu(device, set);

	if (rc != NVML_SUCCESS)
		return rc;
	if (types & ~supported_types(device))
		return NVML_NOT_SUPPORTED;
	set->types[device->index] |= types;
	return NVML_SUCCESS;
}

/* Reads up to the end of a line. Returns false if the log has none yet; too long lines are cut. */
static bool read_line(struct nvml_event_set *set)
{
	char c;

	while (set->log >= 0 && read(set->log, &c, 1) == 1) {
		if (c == '\n') {
			set->line[set->n] = '\0';
			set->n = 0;
			return true;
		}
		if (set->n + 1 < sizeof(set->line))
			set->line[set->n++] = c;
	}
	return false;
}

static bool next_event(struct nvml_event_set *set, nvmlEventData_t *data)
{
	while (read_line(set)) {
		struct sim_log_event event = sim_log_parse(set->line);

		for (unsigned int i = 0; event.kind == SIM_LOG_XID && i < nvml_state.n_gpus; i++) {
			if (nvml_state.gpus[i].gpu != &sim_data.gpus[event.gpu] || !(set->types[i] & NVML_EVENT_XID))
				continue;
			*data = (nvmlEventData_t){ .device = &nvml_state.gpus[i],
						   .eventType = NVML_EVENT_XID,
						   .eventData = event.xid,
						   .gpuInstanceId = event.gi,
						   .computeInstanceId = event.ci };
			return true;
		}
	}
	return false;
}

ENTRY(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	if (!set || !data)
		return NVML_INVALID_ARGUMENT;
	for (;;) {
		unsigned int step = timeout_ms < STEP_MS ? timeout_ms : STEP_MS;
		struct timespec delay = { .tv_nsec = (long)step * 1000000 };

		if (next_event(set, data))
			return NVML_SUCCESS;
		if (step == 0)
			return NVML_TIMEOUT;
		(void)nanosleep(&delay, NULL);
		timeout_ms -= step;
	}
}
ALIAS(nvmlEventSetWait, nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms);
