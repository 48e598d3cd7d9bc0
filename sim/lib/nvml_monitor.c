/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_monitor: what the simulated libnvidia-ml.so.1 answers to monitoring: memory, clocks, power,
 * temperatures, errors, processes. The GPUs are idle and in good health.
 */
#include <time.h>

#include "kernel_log.h"
#include "nvml_parts.h"

static unsigned long long total_memory(const struct nvml_handle *device)
{
	return device->mig ? device->mig->memory : device->gpu->memory;
}

#define USED_MEMORY (4ull << 20)

ENTRY(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t rc = nvml_check_device(device, memory);

	if (rc != NVML_SUCCESS)
		return rc;
	memory->total = total_memory(device);
	memory->used = USED_MEMORY;
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t rc = nvml_check_device(device, memory);

	if (rc != NVML_SUCCESS)
		return rc;
	if (memory->version != (sizeof(*memory) | 2u << 24))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	memory->total = total_memory(device);
	memory->reserved = 0;
	memory->used = USED_MEMORY;
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
	nvmlReturn_t rc = nvml_check_device(device, memory);

	if (rc == NVML_SUCCESS)
		*memory =
		    (nvmlBAR1Memory_t){ .bar1Total = 256ull << 20, .bar1Free = 255ull << 20, .bar1Used = 1ull << 20 };
	return rc;
}

ENTRY(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	nvmlReturn_t rc = nvml_check_gpu(device, utilization);

	if (rc == NVML_SUCCESS)
		*utilization = (nvmlUtilization_t){ 0, 0 };
	return rc;
}

ENTRY(nvmlDeviceGetTemperature, nvmlDevice_t device, unsigned int sensor, unsigned int *temperature)
{
	nvmlReturn_t rc = nvml_check_gpu(device, temperature);

	if (rc != NVML_SUCCESS || sensor != 0)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*temperature = 30 + device->gpu->minor % 8;
	return NVML_SUCCESS;
}

#define IDLE_CLOCK 345

/* All four clocks are idle. */
ENTRY(nvmlDeviceGetClockInfo, nvmlDevice_t device, unsigned int type, unsigned int *clock)
{
	nvmlReturn_t rc = nvml_check_device(device, clock);

	if (rc != NVML_SUCCESS || type > 3)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*clock = IDLE_CLOCK;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetEccMode, nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	nvmlReturn_t rc = nvml_check_gpu(device, current);

	if (rc != NVML_SUCCESS)
		return rc;
	if (device->gpu->display)
		return NVML_NOT_SUPPORTED;
	*current = 1;
	if (pending)
		*pending = 1;
	return NVML_SUCCESS;
}

/* 3 until Turing, 4 with Ampere and Ada, 5 since Hopper. */
static unsigned int pcie_generation(const struct nvml_handle *device)
{
	if (device->gpu->arch <= 6)
		return 3;
	return device->gpu->arch <= 8 ? 4 : 5;
}

GIVE_NUMBER(nvmlDeviceGetPowerUsage, nvml_check_gpu, unsigned int, device->gpu->power_watts * 100)
GIVE_NUMBER(nvmlDeviceGetPowerManagementLimit, nvml_check_gpu, unsigned int, device->gpu->power_watts * 1000)
GIVE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, nvml_check_gpu, unsigned int, device->gpu->power_watts * 1000)
GIVE_NUMBER(nvmlDeviceGetPerformanceState, nvml_check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetPersistenceMode, nvml_check_gpu, unsigned int, 1)
GIVE_NUMBER(nvmlDeviceGetComputeMode, nvml_check_gpu, unsigned int,
	    sim_gpu_compute_mode((uint32_t)(device->gpu - sim_data.gpus)))

ENTRY(nvmlDeviceSetComputeMode, nvmlDevice_t device, unsigned int mode)
{
	unsigned int now = 0;
	nvmlReturn_t rc = nvml_check_gpu(device, &now);

	if (rc != NVML_SUCCESS || (mode != 0 && mode != 2 && mode != 3))
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	return sim_log_compute_mode((uint32_t)(device->gpu - sim_data.gpus), mode) ? NVML_SUCCESS : NVML_NO_PERMISSION;
}
GIVE_NUMBER(nvmlDeviceGetDisplayMode, nvml_check_gpu, unsigned int, device->gpu->display)
GIVE_NUMBER(nvmlDeviceGetDisplayActive, nvml_check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, nvml_check_gpu, unsigned int, pcie_generation(device))
GIVE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, nvml_check_gpu, unsigned int, pcie_generation(device))
GIVE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, nvml_check_gpu, unsigned int, 16)
GIVE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, nvml_check_gpu, unsigned int, 16)

static nvmlReturn_t give_no_processes(const struct nvml_handle *device, unsigned int *count)
{
	nvmlReturn_t rc = nvml_check_device(device, count);

	if (rc == NVML_SUCCESS)
		*count = 0;
	return rc;
}

#define GIVE_NO_PROCESSES(name)                                            \
	ENTRY(name, nvmlDevice_t device, unsigned int *count, void *infos) \
	{                                                                  \
		(void)infos;                                               \
		return give_no_processes(device, count);                   \
	}
GIVE_NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses)
GIVE_NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2)
GIVE_NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
GIVE_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
GIVE_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
GIVE_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
GIVE_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
GIVE_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
GIVE_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)
GIVE_NO_PROCESSES(nvmlDeviceGetEncoderSessions)
GIVE_NO_PROCESSES(nvmlDeviceGetFBCSessions)
GIVE_NO_PROCESSES(nvmlDeviceGetAccountingPids)

ENTRY(nvmlDeviceGetProcessUtilization, nvmlDevice_t device, void *samples, unsigned int *count,
      unsigned long long since)
{
	(void)samples;
	(void)since;
	return give_no_processes(device, count);
}

/* --- two numbers at once --- */

static nvmlReturn_t give_pair(nvmlReturn_t rc, unsigned int *first, unsigned int *second, unsigned int a,
			      unsigned int b)
{
	if (rc != NVML_SUCCESS || !second)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*first = a;
	*second = b;
	return NVML_SUCCESS;
}

#define GIVE_PAIR(name, a, b)                                                             \
	ENTRY(name, nvmlDevice_t device, unsigned int *first, unsigned int *second)       \
	{                                                                                 \
		return give_pair(nvml_check_gpu(device, first), first, second, (a), (b)); \
	}
GIVE_PAIR(nvmlDeviceGetEncoderUtilization, 0, 167000)
GIVE_PAIR(nvmlDeviceGetDecoderUtilization, 0, 167000)
GIVE_PAIR(nvmlDeviceGetJpgUtilization, 0, 167000)
GIVE_PAIR(nvmlDeviceGetOfaUtilization, 0, 167000)
GIVE_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, 100000, device->gpu->power_watts * 1000)
GIVE_PAIR(nvmlDeviceGetGspFirmwareMode, sim_data.firmware, sim_data.firmware)

/* --- clocks, limits, states --- */

/* Graphics, multiprocessor, memory and video clocks under load. */
static const unsigned int max_clocks[] = { 1980, 1980, 2619, 1545 };

static nvmlReturn_t give_clock(const struct nvml_handle *device, unsigned int type, unsigned int *clock,
			       const unsigned int *clocks)
{
	nvmlReturn_t rc = nvml_check_gpu(device, clock);

	if (rc != NVML_SUCCESS || type > 3)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*clock = clocks[type];
	return NVML_SUCCESS;
}

#define GIVE_MAX_CLOCK(name)                                                     \
	ENTRY(name, nvmlDevice_t device, unsigned int type, unsigned int *clock) \
	{                                                                        \
		return give_clock(device, type, clock, max_clocks);              \
	}
GIVE_MAX_CLOCK(nvmlDeviceGetMaxClockInfo)
GIVE_MAX_CLOCK(nvmlDeviceGetMaxCustomerBoostClock)
GIVE_MAX_CLOCK(nvmlDeviceGetApplicationsClock)
GIVE_MAX_CLOCK(nvmlDeviceGetDefaultApplicationsClock)

/* One for the memory, and with it each step from idle to load for the rest. */
#define CLOCK_STEP 15

static nvmlReturn_t give_clocks(const struct nvml_handle *device, unsigned int *count, unsigned int *clocks,
				unsigned int most, unsigned int n)
{
	nvmlReturn_t rc = nvml_check_gpu(device, count);
	bool enough;

	if (rc != NVML_SUCCESS)
		return rc;
	enough = *count >= n;
	*count = n;
	if (!enough)
		return NVML_INSUFFICIENT_SIZE;
	if (!clocks)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < n; i++)
		clocks[i] = most - i * CLOCK_STEP;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetSupportedMemoryClocks, nvmlDevice_t device, unsigned int *count, unsigned int *clocks)
{
	return give_clocks(device, count, clocks, max_clocks[2], 1);
}

ENTRY(nvmlDeviceGetSupportedGraphicsClocks, nvmlDevice_t device, unsigned int memory_clock, unsigned int *count,
      unsigned int *clocks)
{
	if (memory_clock != max_clocks[2])
		return NVML_NOT_FOUND;
	return give_clocks(device, count, clocks, max_clocks[0], (max_clocks[0] - IDLE_CLOCK) / CLOCK_STEP + 1);
}

ENTRY(nvmlDeviceGetClock, nvmlDevice_t device, unsigned int type, unsigned int which, unsigned int *clock)
{
	if (which > 3)
		return NVML_INVALID_ARGUMENT;
	return which == 0 ? nvmlDeviceGetClockInfo(device, type, clock) : give_clock(device, type, clock, max_clocks);
}

/* Shutdown, slowdown, memory and GPU maximum. */
ENTRY(nvmlDeviceGetTemperatureThreshold, nvmlDevice_t device, unsigned int type, unsigned int *temperature)
{
	static const unsigned int thresholds[] = { 92, 89, 95, 87 };
	nvmlReturn_t rc = nvml_check_gpu(device, temperature);

	if (rc != NVML_SUCCESS || type > 3)
		return rc != NVML_SUCCESS ? rc : NVML_NOT_SUPPORTED;
	*temperature = thresholds[type];
	return NVML_SUCCESS;
}

GIVE_NUMBER(nvmlDeviceGetPowerManagementMode, nvml_check_gpu, unsigned int, 1)
GIVE_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, nvml_check_gpu, unsigned int, device->gpu->power_watts * 1000)
GIVE_NUMBER(nvmlDeviceGetPowerSource, nvml_check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetPowerState, nvml_check_gpu, unsigned int, 0)
/* The first bit: the GPU is idle. */
GIVE_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, nvml_check_gpu, unsigned long long, 1)
GIVE_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, nvml_check_gpu, unsigned long long, 1)
GIVE_NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, nvml_check_gpu, unsigned long long, 0x1ff)
GIVE_NUMBER(nvmlDeviceGetSupportedClocksEventReasons, nvml_check_gpu, unsigned long long, 0x1ff)
GIVE_NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, nvml_check_gpu, unsigned int, pcie_generation(device))
GIVE_NUMBER(nvmlDeviceGetPcieReplayCounter, nvml_check_gpu, unsigned int, 0)
/* The first in Mbit/s of a lane, twice as much with each generation; the second numbers the same speeds. */
GIVE_NUMBER(nvmlDeviceGetPcieSpeed, nvml_check_gpu, unsigned int, 1000u << pcie_generation(device))
GIVE_NUMBER(nvmlDeviceGetPcieLinkMaxSpeed, nvml_check_gpu, unsigned int, pcie_generation(device))
GIVE_NUMBER(nvmlDeviceGetMemoryBusWidth, nvml_check_gpu, unsigned int, device->gpu->display ? 384 : 5120)
GIVE_NUMBER(nvmlDeviceGetIrqNum, nvml_check_gpu, unsigned int, 100 + device->gpu->minor)
GIVE_NUMBER(nvmlDeviceGetNumFans, nvml_check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetAccountingMode, nvml_check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetAccountingBufferSize, nvml_check_gpu, unsigned int, 4000)
GIVE_NUMBER(nvmlDeviceGetVirtualizationMode, nvml_check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetAdaptiveClockInfoStatus, nvml_check_gpu, unsigned int, 0)

/* An idle GPU takes a tenth of its power; milliwatts and seconds make millijoules. */
ENTRY(nvmlDeviceGetTotalEnergyConsumption, nvmlDevice_t device, unsigned long long *energy)
{
	nvmlReturn_t rc = nvml_check_gpu(device, energy);
	struct timespec now;

	if (rc != NVML_SUCCESS)
		return rc;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	*energy = (unsigned long long)now.tv_sec * device->gpu->power_watts * 100;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetPcieThroughput, nvmlDevice_t device, unsigned int counter, unsigned int *kilobytes)
{
	nvmlReturn_t rc = nvml_check_gpu(device, kilobytes);

	if (rc != NVML_SUCCESS || counter > 1)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*kilobytes = 0;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetViolationStatus, nvmlDevice_t device, unsigned int policy, nvmlViolationTime_t *time_)
{
	nvmlReturn_t rc = nvml_check_gpu(device, time_);

	(void)policy;
	if (rc == NVML_SUCCESS)
		*time_ = (nvmlViolationTime_t){ 0, 0 };
	return rc;
}

ENTRY(nvmlDeviceGetEncoderStats, nvmlDevice_t device, unsigned int *sessions, unsigned int *rate, unsigned int *latency)
{
	nvmlReturn_t rc = give_pair(nvml_check_gpu(device, sessions), sessions, rate, 0, 0);

	if (rc != NVML_SUCCESS || !latency)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*latency = 0;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetFBCStats, nvmlDevice_t device, nvmlFBCStats_t *stats)
{
	nvmlReturn_t rc = nvml_check_gpu(device, stats);

	if (rc == NVML_SUCCESS)
		*stats = (nvmlFBCStats_t){ 0, 0, 0 };
	return rc;
}

/* --- errors of memory: there are none --- */

/* GPUs for displays have no ECC. */
static nvmlReturn_t check_ecc(const struct nvml_handle *device, const void *out)
{
	nvmlReturn_t rc = nvml_check_gpu(device, out);

	return rc == NVML_SUCCESS && device->gpu->display ? NVML_NOT_SUPPORTED : rc;
}

/* From Ampere on, memory rows are remapped; before, pages were retired. */
static bool remaps_rows(const struct nvml_handle *device)
{
	return device->gpu->arch >= 7;
}

GIVE_NUMBER(nvmlDeviceGetDefaultEccMode, check_ecc, unsigned int, 1)

ENTRY(nvmlDeviceGetTotalEccErrors, nvmlDevice_t device, unsigned int type, unsigned int counter,
      unsigned long long *count)
{
	nvmlReturn_t rc = check_ecc(device, count);

	if (rc != NVML_SUCCESS || type > 1 || counter > 1)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetMemoryErrorCounter, nvmlDevice_t device, unsigned int type, unsigned int counter,
      unsigned int location, unsigned long long *count)
{
	return location > 7 ? NVML_INVALID_ARGUMENT : nvmlDeviceGetTotalEccErrors(device, type, counter, count);
}

ENTRY(nvmlDeviceGetDetailedEccErrors, nvmlDevice_t device, unsigned int type, unsigned int counter,
      nvmlEccErrorCounts_t *counts)
{
	nvmlReturn_t rc = check_ecc(device, counts);

	if (rc != NVML_SUCCESS || type > 1 || counter > 1)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*counts = (nvmlEccErrorCounts_t){ 0, 0, 0, 0 };
	return NVML_SUCCESS;
}

static nvmlReturn_t check_pages(const struct nvml_handle *device, const void *out)
{
	nvmlReturn_t rc = check_ecc(device, out);

	return rc == NVML_SUCCESS && remaps_rows(device) ? NVML_NOT_SUPPORTED : rc;
}

GIVE_NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, check_pages, unsigned int, 0)

ENTRY(nvmlDeviceGetRetiredPages_v2, nvmlDevice_t device, unsigned int cause, unsigned int *count,
      unsigned long long *addresses, unsigned long long *times)
{
	nvmlReturn_t rc = check_pages(device, count);

	(void)addresses;
	(void)times;
	if (rc != NVML_SUCCESS || cause > 1)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetRetiredPages, nvmlDevice_t device, unsigned int cause, unsigned int *count,
      unsigned long long *addresses)
{
	return nvmlDeviceGetRetiredPages_v2(device, cause, count, addresses, NULL);
}

static nvmlReturn_t check_rows(const struct nvml_handle *device, const void *out)
{
	nvmlReturn_t rc = check_ecc(device, out);

	return rc == NVML_SUCCESS && !remaps_rows(device) ? NVML_NOT_SUPPORTED : rc;
}

ENTRY(nvmlDeviceGetRemappedRows, nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
      unsigned int *pending, unsigned int *failed)
{
	nvmlReturn_t rc = give_pair(check_rows(device, corrected), corrected, uncorrected, 0, 0);

	return rc == NVML_SUCCESS ? give_pair(pending ? rc : NVML_INVALID_ARGUMENT, pending, failed, 0, 0) : rc;
}

ENTRY(nvmlDeviceGetRowRemapperHistogram, nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *values)
{
	nvmlReturn_t rc = check_rows(device, values);

	if (rc == NVML_SUCCESS)
		*values = (nvmlRowRemapperHistogramValues_t){ .max = 640 };
	return rc;
}

/* --- fields: a number for each question --- */

/* Returns whether NVML has the field, and sets its value and type. */
static bool field_value(struct nvml_handle *device, unsigned int field, unsigned int scope,
			unsigned long long *ret_value, unsigned int *ret_type)
{
	const volatile struct sim_data_gpu *gpu = device->gpu;
	bool has_link = scope < gpu->n_links;

	*ret_type = NVML_VALUE_ULLONG;
	*ret_value = 0;
	switch (field) {
	case 1: /* ECC now */
	case 2: /* ECC after a restart */
		*ret_type = NVML_VALUE_UINT;
		*ret_value = 1;
		return !gpu->display;
	case 3 ... 29: /* errors of memory */
		return !gpu->display;
	case 83: /* energy */
	case 191:
		return nvmlDeviceGetTotalEnergyConsumption(device, ret_value) == NVML_SUCCESS;
	case 90: /* speed of all links */
		*ret_type = NVML_VALUE_UINT;
		*ret_value = gpu->link_speed;
		return gpu->n_links > 0;
	case 91: /* number of links */
		*ret_type = NVML_VALUE_UINT;
		*ret_value = gpu->n_links;
		return true;
	case 94: /* replays on PCIe */
	case 95:
		*ret_type = NVML_VALUE_UINT;
		return true;
	case 138 ... 141: /* traffic of a link */
	case 161 ... 163: /* errors of a link */
		return gpu->n_links > 0;
	case 142 ... 145: /* remapped rows */
		*ret_type = NVML_VALUE_UINT;
		return !gpu->display && remaps_rows(device);
	case 147: /* links that lead to a switch */
		*ret_type = NVML_VALUE_UINT;
		*ret_value = sim_data.n_switches > 0 || sim_data.fabric > 0 ? gpu->n_links : 0;
		return gpu->n_links > 0;
	case 164:
		*ret_type = NVML_VALUE_UINT;
		*ret_value = gpu->link_speed;
		return has_link;
	case 165: /* state of a link: up */
		*ret_type = NVML_VALUE_UINT;
		*ret_value = has_link && gpu->links[scope] != SIM_LINK_DOWN;
		return has_link;
	case 166:
		*ret_type = NVML_VALUE_UINT;
		*ret_value = gpu->link_version;
		return has_link;
	case 170: /* links between GPU and CPU */
		*ret_type = NVML_VALUE_UINT;
		*ret_value = gpu->coherent ? 10 : 0;
		return true;
	case 171:
	case 172:
		*ret_type = NVML_VALUE_UINT;
		*ret_value = field == 171 ? 1 : 44712;
		return gpu->coherent && scope < 10;
	case 185: /* power */
	case 186:
		*ret_type = NVML_VALUE_UINT;
		*ret_value = gpu->power_watts * 100ull;
		return true;
	case 187: /* limits of power */
		*ret_type = NVML_VALUE_UINT;
		*ret_value = 100000;
		return true;
	case 188 ... 190:
	case 192:
		*ret_type = NVML_VALUE_UINT;
		*ret_value = gpu->power_watts * 1000ull;
		return true;
	default:
		return false;
	}
}

ENTRY(nvmlDeviceGetFieldValues, nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	nvmlReturn_t rc = nvml_check_gpu(device, values);
	unsigned long long value;
	struct timespec now;

	if (rc != NVML_SUCCESS || count <= 0)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	for (int i = 0; i < count; i++) {
		nvmlFieldValue_t *field = &values[i];
		bool known = field_value(device, field->fieldId, field->scopeId, &value, &field->valueType);

		field->timestamp = now.tv_sec * 1000000ll + now.tv_nsec / 1000;
		field->latencyUsec = 0;
		field->nvmlReturn = known ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
		field->value.ullVal = 0;
		if (field->valueType == NVML_VALUE_UINT)
			field->value.uiVal = (unsigned int)value;
		else
			field->value.ullVal = value;
	}
	return NVML_SUCCESS;
}
