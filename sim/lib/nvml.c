/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml: the simulated libnvidia-ml.so.1. Its answers come from the block in its own file and from what this process may open; it has no
 * state but the list made by nvmlInit(), takes nothing from the environment, and knows nothing of graft-sim.
 */
#include "nvml_api.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "visible.h"

#define API __attribute__((visibility("default")))
/* Another name of the same function, for callers built against another version of the header. */
#define ALIAS(name, of, ...) API extern nvmlReturn_t name(__VA_ARGS__) __attribute__((alias(#of)))

struct nvml_handle {
	const volatile struct sim_data_gpu *gpu;
	const volatile struct sim_data_mig *mig; /* NULL for a GPU */
	struct nvml_handle *parent;
	unsigned int index;
	unsigned int n_mig;
	struct nvml_handle *migs[SIM_MAX_MIG];
};

static struct {
	char busy;
	unsigned int references;
	unsigned int n_gpus;
	unsigned int n_migs;
	struct nvml_handle gpus[SIM_MAX_GPUS];
	struct nvml_handle migs[SIM_MAX_GPUS * SIM_MAX_MIG];
} state;

/* A spin lock: pthread's symbols moved between libraries with glibc 2.34, and this must load with either. */
static void lock(void)
{
	while (__atomic_test_and_set(&state.busy, __ATOMIC_ACQUIRE))
		(void)sched_yield();
}

static void unlock(void)
{
	__atomic_clear(&state.busy, __ATOMIC_RELEASE);
}

static void enumerate(void)
{
	state.n_gpus = state.n_migs = 0;
	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		struct nvml_handle *gpu = &state.gpus[state.n_gpus];

		if (!sim_gpu_visible(i))
			continue;
		*gpu = (struct nvml_handle){ .gpu = &sim_data.gpus[i], .index = state.n_gpus++ };
		for (uint32_t k = 0; sim_data.gpus[i].mig_enabled && k < sim_data.gpus[i].n_mig; k++) {
			struct nvml_handle *mig = &state.migs[state.n_migs];

			if (!sim_mig_visible(i, k))
				continue;
			*mig = (struct nvml_handle){
				.gpu = gpu->gpu, .mig = &sim_data.gpus[i].mig[k], .parent = gpu, .index = gpu->n_mig
			};
			gpu->migs[gpu->n_mig++] = mig;
			state.n_migs++;
		}
	}
}

static bool same_version(void)
{
	for (unsigned int i = 0; i < sizeof(sim_data.module_version); i++) {
		if (sim_data.module_version[i] != sim_data.driver_version[i])
			return false;
		if (sim_data.module_version[i] == '\0')
			break;
	}
	return true;
}

static nvmlReturn_t initialise(void)
{
	if (sim_data.init_crash)
		(void)raise(SIGSEGV);
	if (sim_data.init_delay_ms > 0) {
		struct timespec delay = { .tv_sec = sim_data.init_delay_ms / 1000,
					  .tv_nsec = (long)(sim_data.init_delay_ms % 1000) * 1000000 };

		while (nanosleep(&delay, &delay) < 0)
			;
	}
	if (sim_data.init_fail != 0)
		return (nvmlReturn_t)sim_data.init_fail;
	switch (sim_driver_access()) {
	case SIM_ACCESS_ABSENT:
		return NVML_DRIVER_NOT_LOADED;
	case SIM_ACCESS_REFUSED:
		return NVML_UNKNOWN; /* what the real library says when the device cgroup refuses */
	case SIM_ACCESS_MODE:
		return NVML_NO_PERMISSION;
	case SIM_ACCESS_YES:
		break;
	}
	if (!sim_data.wsl && !sim_data.no_nodes && !same_version())
		return NVML_LIB_RM_VERSION_MISMATCH;
	enumerate();
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlInit_v2(void);
API nvmlReturn_t nvmlInit_v2(void)
{
	nvmlReturn_t rc = NVML_SUCCESS;

	lock();
	if (state.references == 0)
		rc = initialise();
	if (rc == NVML_SUCCESS)
		state.references++;
	unlock();
	return rc;
}
ALIAS(nvmlInit, nvmlInit_v2, void);

API nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
API nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return nvmlInit_v2();
}

API nvmlReturn_t nvmlShutdown(void);
API nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t rc = NVML_UNINITIALIZED;

	lock();
	if (state.references > 0) {
		state.references--;
		rc = NVML_SUCCESS;
	}
	unlock();
	return rc;
}

API const char *nvmlErrorString(nvmlReturn_t result);
API const char *nvmlErrorString(nvmlReturn_t result)
{
	static const struct {
		unsigned int value;
		const char *text;
	} texts[] = {
#define X(value, name, text) { value, text },
		NVML_RETURN_LIST(X)
#undef X
	};

	for (unsigned int i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].value == (unsigned int)result)
			return texts[i].text;
	}
	return "Unknown Error";
}

/* --- checks that every function begins with --- */

static bool is_handle(const struct nvml_handle *device)
{
	return (device >= state.gpus && device < state.gpus + state.n_gpus) ||
	       (device >= state.migs && device < state.migs + state.n_migs);
}

static nvmlReturn_t check(const struct nvml_handle *device, const void *out)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!is_handle(device) || !out)
		return NVML_INVALID_ARGUMENT;
	return device->gpu->lost ? NVML_GPU_IS_LOST : NVML_SUCCESS;
}

/* The same for what a MIG device does not answer. */
static nvmlReturn_t check_gpu(const struct nvml_handle *device, const void *out)
{
	nvmlReturn_t rc = check(device, out);

	return rc == NVML_SUCCESS && device->mig ? NVML_NOT_SUPPORTED : rc;
}

static nvmlReturn_t give_text(char *out, unsigned int size, const volatile char *text)
{
	return sim_copy(out, size, text) ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

/* Functions of one shape: a GPU's number. */
#define GIVE_NUMBER(name, checker, type, expression)           \
	API nvmlReturn_t name(nvmlDevice_t device, type *out); \
	API nvmlReturn_t name(nvmlDevice_t device, type *out)  \
	{                                                      \
		nvmlReturn_t rc = checker(device, out);        \
                                                               \
		if (rc == NVML_SUCCESS)                        \
			*out = (type)(expression);             \
		return rc;                                     \
	}

#define GIVE_TEXT(name, checker, expression)                                       \
	API nvmlReturn_t name(nvmlDevice_t device, char *out, unsigned int size);  \
	API nvmlReturn_t name(nvmlDevice_t device, char *out, unsigned int size)   \
	{                                                                          \
		nvmlReturn_t rc = checker(device, out);                            \
                                                                                   \
		return rc == NVML_SUCCESS ? give_text(out, size, expression) : rc; \
	}

#define REFUSE(name, ...)                   \
	API nvmlReturn_t name(__VA_ARGS__); \
	API nvmlReturn_t name(__VA_ARGS__)  \
	{                                   \
		return NVML_NOT_SUPPORTED;  \
	}

/* --- the system --- */

API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length);
API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	return version ? give_text(version, length, sim_data.driver_version) : NVML_INVALID_ARGUMENT;
}

API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length);
API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	char text[64], driver[32];

	if (!version)
		return NVML_INVALID_ARGUMENT;
	(void)sim_copy(driver, sizeof(driver), sim_data.driver_version);
	(void)snprintf(text, sizeof(text), "%u.%s", sim_data.cuda / 1000, driver);
	return give_text(version, length, text);
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	if (!version)
		return NVML_INVALID_ARGUMENT;
	*version = (int)sim_data.cuda;
	return NVML_SUCCESS;
}
ALIAS(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2, int *version);

static nvmlReturn_t give_zero(unsigned int *count)
{
	if (!count)
		return NVML_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlUnitGetCount(unsigned int *count);
API nvmlReturn_t nvmlUnitGetCount(unsigned int *count)
{
	return give_zero(count);
}

API nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count);
API nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count)
{
	return give_zero(count);
}

/* --- handles --- */

API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);
API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!count)
		return NVML_INVALID_ARGUMENT;
	*count = state.n_gpus;
	return NVML_SUCCESS;
}
ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2, unsigned int *count);

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!device || index >= state.n_gpus)
		return NVML_INVALID_ARGUMENT;
	if (state.gpus[index].gpu->lost)
		return NVML_GPU_IS_LOST;
	*device = &state.gpus[index];
	return NVML_SUCCESS;
}
ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2, unsigned int index, nvmlDevice_t *device);

static bool has_name(const volatile char *name, const char *wanted)
{
	char copy[96];

	(void)sim_copy(copy, sizeof(copy), name);
	return strcasecmp(copy, wanted) == 0;
}

static nvmlReturn_t give_handle(struct nvml_handle *handle, nvmlDevice_t *device)
{
	if (handle->gpu->lost)
		return NVML_GPU_IS_LOST;
	*device = handle;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!uuid || !device)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < state.n_gpus; i++) {
		if (has_name(state.gpus[i].gpu->uuid, uuid))
			return give_handle(&state.gpus[i], device);
	}
	for (unsigned int i = 0; i < state.n_migs; i++) {
		if (has_name(state.migs[i].mig->uuid, uuid))
			return give_handle(&state.migs[i], device);
	}
	return NVML_NOT_FOUND;
}

API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device);
API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!serial || !device)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < state.n_gpus; i++) {
		if (has_name(state.gpus[i].gpu->serial, serial))
			return give_handle(&state.gpus[i], device);
	}
	return NVML_NOT_FOUND;
}

/* "00000000:1B:00.0", "0000:1b:00.0", "1b:00.0": hexadecimal numbers with colons between them. */
static bool parse_bus_id(const char *text, unsigned long numbers[3])
{
	unsigned int n = 0;
	char *end;

	numbers[0] = 0;
	while (n < 3) {
		numbers[n++] = strtoul(text, &end, 16);
		if (end == text || *end != ':')
			break;
		text = end + 1;
	}
	if (n == 2) {
		numbers[2] = numbers[1];
		numbers[1] = numbers[0];
		numbers[0] = 0;
	}
	return n >= 2 && end != text && strcmp(end, ".0") == 0;
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device);
API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
	unsigned long numbers[3];

	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!bus_id || !device || !parse_bus_id(bus_id, numbers))
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < state.n_gpus; i++) {
		const volatile struct sim_data_gpu *gpu = state.gpus[i].gpu;

		if (gpu->domain == numbers[0] && gpu->bus == numbers[1] && gpu->device == numbers[2])
			return give_handle(&state.gpus[i], device);
	}
	return NVML_NOT_FOUND;
}
ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, nvmlDevice_t *device);

/* --- what a GPU is --- */

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	nvmlReturn_t rc = check(device, name);
	char gpu[96], profile[32], text[160];

	if (rc != NVML_SUCCESS)
		return rc;
	(void)sim_copy(gpu, sizeof(gpu), device->gpu->name);
	if (!device->mig)
		return give_text(name, length, gpu);
	(void)sim_copy(profile, sizeof(profile), device->mig->profile);
	(void)snprintf(text, sizeof(text), "%s MIG %s", gpu, profile);
	return give_text(name, length, text);
}

GIVE_TEXT(nvmlDeviceGetUUID, check, device->mig ? device->mig->uuid : device->gpu->uuid)
GIVE_TEXT(nvmlDeviceGetSerial, check_gpu, device->gpu->serial)
GIVE_TEXT(nvmlDeviceGetVbiosVersion, check_gpu, device->gpu->vbios)
GIVE_TEXT(nvmlDeviceGetBoardPartNumber, check_gpu, "900-SIMULATED-000")
GIVE_NUMBER(nvmlDeviceGetMinorNumber, check_gpu, unsigned int, device->gpu->minor)
GIVE_NUMBER(nvmlDeviceGetIndex, check, unsigned int, device->index)
GIVE_NUMBER(nvmlDeviceGetBrand, check, unsigned int, device->gpu->brand)
GIVE_NUMBER(nvmlDeviceGetArchitecture, check, unsigned int, device->gpu->arch)
GIVE_NUMBER(nvmlDeviceGetNumGpuCores, check_gpu, unsigned int, device->gpu->multiprocessors * 128)
GIVE_NUMBER(nvmlDeviceGetMultiGpuBoard, check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetBoardId, check_gpu, unsigned int, device->gpu->bus << 8)

API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor);
API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	nvmlReturn_t rc = check(device, major);

	if (rc != NVML_SUCCESS || !minor)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*major = (int)device->gpu->cc_major;
	*minor = (int)device->gpu->cc_minor;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode);
API nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode)
{
	nvmlReturn_t rc = check_gpu(device, mode);

	if (rc != NVML_SUCCESS)
		return rc;
	if (mode->version != NVML_ADDRESSING_VERSION)
		return NVML_ARGUMENT_VERSION_MISMATCH;
	if (!device->gpu->coherent)
		return NVML_NOT_SUPPORTED;
	mode->value = NVML_ADDRESSING_ATS;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	nvmlReturn_t rc = check(device, pci);
	const volatile struct sim_data_gpu *gpu;

	if (rc != NVML_SUCCESS)
		return rc;
	gpu = device->gpu;
	*pci = (nvmlPciInfo_t){ .domain = gpu->domain,
				.bus = gpu->bus,
				.device = gpu->device,
				.pciDeviceId = gpu->pci_id,
				.pciSubSystemId = gpu->pci_subsystem_id };
	(void)snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.0", gpu->domain & 0xffff,
		       gpu->bus & 0xff, gpu->device & 0xff);
	(void)snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->device);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci);
API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
	nvmlPciInfo_t full;
	nvmlReturn_t rc = pci ? nvmlDeviceGetPciInfo_v3(device, &full) : NVML_INVALID_ARGUMENT;

	if (rc != NVML_SUCCESS)
		return rc;
	*pci = (nvmlPciInfo_v2_t){ .domain = full.domain,
				   .bus = full.bus,
				   .device = full.device,
				   .pciDeviceId = full.pciDeviceId,
				   .pciSubSystemId = full.pciSubSystemId };
	memcpy(pci->busId, full.busIdLegacy, sizeof(pci->busId));
	return NVML_SUCCESS;
}
ALIAS(nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v2, nvmlDevice_t device, nvmlPciInfo_v2_t *pci);

/* --- MIG --- */

API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending);
API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	nvmlReturn_t rc = check_gpu(device, current);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!device->gpu->mig_capable)
		return NVML_NOT_SUPPORTED;
	*current = device->gpu->mig_enabled;
	if (pending)
		*pending = device->gpu->mig_enabled;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count);
API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
	nvmlReturn_t rc = check_gpu(device, count);

	if (rc == NVML_SUCCESS)
		*count = device->gpu->mig_capable ? 7 : 0;
	return rc;
}

API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig);
API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
	nvmlReturn_t rc = check_gpu(device, mig);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!device->gpu->mig_enabled)
		return NVML_NOT_SUPPORTED;
	if (index >= device->n_mig)
		return NVML_NOT_FOUND;
	*mig = device->migs[index];
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device);
API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
	nvmlReturn_t rc = check(mig, device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!mig->mig)
		return NVML_INVALID_ARGUMENT;
	*device = mig->parent;
	return NVML_SUCCESS;
}

static nvmlReturn_t check_mig(const struct nvml_handle *device, const void *out)
{
	nvmlReturn_t rc = check(device, out);

	return rc == NVML_SUCCESS && !device->mig ? NVML_NOT_SUPPORTED : rc;
}

GIVE_NUMBER(nvmlDeviceIsMigDeviceHandle, check, unsigned int, device->mig != NULL)
GIVE_NUMBER(nvmlDeviceGetGpuInstanceId, check_mig, unsigned int, device->mig->gi)
GIVE_NUMBER(nvmlDeviceGetComputeInstanceId, check_mig, unsigned int, device->mig->ci)

API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes);
API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
	nvmlReturn_t rc = check_mig(device, attributes);

	if (rc != NVML_SUCCESS)
		return rc;
	*attributes = (nvmlDeviceAttributes_t){ .multiprocessorCount = device->mig->multiprocessors,
						.sharedCopyEngineCount = device->mig->gi_slices,
						.sharedDecoderCount = device->mig->gi_slices / 2,
						.gpuInstanceSliceCount = device->mig->gi_slices,
						.computeInstanceSliceCount = device->mig->ci_slices,
						.memorySizeMB = device->mig->memory >> 20 };
	return NVML_SUCCESS;
}
ALIAS(nvmlDeviceGetAttributes, nvmlDeviceGetAttributes_v2, nvmlDevice_t device, nvmlDeviceAttributes_t *attributes);

REFUSE(nvmlDeviceSetMigMode, nvmlDevice_t device __attribute__((unused)), unsigned int mode __attribute__((unused)),
       nvmlReturn_t *status __attribute__((unused)))

/* --- what a GPU does: an idle one --- */

static unsigned long long total_memory(const struct nvml_handle *device)
{
	return device->mig ? device->mig->memory : device->gpu->memory;
}

#define USED_MEMORY (4ull << 20)

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t rc = check(device, memory);

	if (rc != NVML_SUCCESS)
		return rc;
	memory->total = total_memory(device);
	memory->used = USED_MEMORY;
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t rc = check(device, memory);

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

API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory);
API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
	nvmlReturn_t rc = check(device, memory);

	if (rc == NVML_SUCCESS)
		*memory =
		    (nvmlBAR1Memory_t){ .bar1Total = 256ull << 20, .bar1Free = 255ull << 20, .bar1Used = 1ull << 20 };
	return rc;
}

API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization);
API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	nvmlReturn_t rc = check_gpu(device, utilization);

	if (rc == NVML_SUCCESS)
		*utilization = (nvmlUtilization_t){ 0, 0 };
	return rc;
}

API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor, unsigned int *temperature);
API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor, unsigned int *temperature)
{
	nvmlReturn_t rc = check_gpu(device, temperature);

	if (rc != NVML_SUCCESS || sensor != 0)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*temperature = 30 + device->gpu->minor % 8;
	return NVML_SUCCESS;
}

/* Which of four clocks does not matter: all idle. */
API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *clock);
API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *clock)
{
	nvmlReturn_t rc = check(device, clock);

	if (rc != NVML_SUCCESS || type > 3)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*clock = 345;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending);
API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	nvmlReturn_t rc = check_gpu(device, current);

	if (rc != NVML_SUCCESS)
		return rc;
	if (device->gpu->display)
		return NVML_NOT_SUPPORTED;
	*current = 1;
	if (pending)
		*pending = 1;
	return NVML_SUCCESS;
}

GIVE_NUMBER(nvmlDeviceGetPowerUsage, check_gpu, unsigned int, device->gpu->power_watts * 100)
GIVE_NUMBER(nvmlDeviceGetPowerManagementLimit, check_gpu, unsigned int, device->gpu->power_watts * 1000)
GIVE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, check_gpu, unsigned int, device->gpu->power_watts * 1000)
GIVE_NUMBER(nvmlDeviceGetPerformanceState, check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetPersistenceMode, check_gpu, unsigned int, 1)
GIVE_NUMBER(nvmlDeviceGetComputeMode, check, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetDisplayMode, check_gpu, unsigned int, device->gpu->display)
GIVE_NUMBER(nvmlDeviceGetDisplayActive, check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, check_gpu, unsigned int, 4)
GIVE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, check_gpu, unsigned int, 4)
GIVE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, check_gpu, unsigned int, 16)
GIVE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, check_gpu, unsigned int, 16)
GIVE_NUMBER(nvmlDeviceGetSupportedEventTypes, check_gpu, unsigned long long, 0)

REFUSE(nvmlDeviceGetFanSpeed, nvmlDevice_t device __attribute__((unused)), unsigned int *speed __attribute__((unused)))
REFUSE(nvmlDeviceGetNvLinkState, nvmlDevice_t device __attribute__((unused)), unsigned int link __attribute__((unused)),
       unsigned int *active __attribute__((unused)))

static nvmlReturn_t give_no_processes(const struct nvml_handle *device, unsigned int *count)
{
	nvmlReturn_t rc = check(device, count);

	if (rc == NVML_SUCCESS)
		*count = 0;
	return rc;
}

#define GIVE_NO_PROCESSES(name)                                                       \
	API nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, void *infos); \
	API nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, void *infos)  \
	{                                                                             \
		(void)infos;                                                          \
		return give_no_processes(device, count);                              \
	}
GIVE_NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses)
GIVE_NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2)
GIVE_NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
GIVE_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
GIVE_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
GIVE_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)

/* Health checks of device plugins wait for events; none ever comes. */
API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set);
API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	if (!set)
		return NVML_INVALID_ARGUMENT;
	*set = (nvmlEventSet_t)(void *)&state;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	return set ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}

API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set);
API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	(void)types;
	return check_gpu(device, set);
}

API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, void *data, unsigned int timeout_ms);
API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, void *data, unsigned int timeout_ms)
{
	struct timespec delay = { .tv_sec = timeout_ms / 1000, .tv_nsec = (long)(timeout_ms % 1000) * 1000000 };

	(void)data;
	if (!set)
		return NVML_INVALID_ARGUMENT;
	(void)nanosleep(&delay, NULL);
	return NVML_TIMEOUT;
}
ALIAS(nvmlEventSetWait, nvmlEventSetWait_v2, nvmlEventSet_t set, void *data, unsigned int timeout_ms);

API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, unsigned int *level);
API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, unsigned int *level)
{
	nvmlReturn_t rc = check_gpu(a, level);

	if (rc == NVML_SUCCESS)
		rc = check_gpu(b, level);
	if (rc == NVML_SUCCESS)
		*level = a == b ? 0 : 50; /* behind different root complexes */
	return rc;
}

API nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int n, unsigned long *cpus);
API nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int n, unsigned long *cpus)
{
	nvmlReturn_t rc = check_gpu(device, cpus);

	for (unsigned int i = 0; rc == NVML_SUCCESS && i < n; i++)
		cpus[i] = ~0ul;
	return rc;
}
