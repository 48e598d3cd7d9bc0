/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml: the simulated libnvidia-ml.so.1. Its answers come from the block in its own file, from what
 * this process may open, and from the simulated kernel log. It has no state except the list that
 * nvmlInit() makes, and knows nothing about graft-sim.
 */
#include "nvml_parts.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "kernel_log.h"

struct nvml_state nvml_state;
#define state nvml_state /* the same, short */

/*
 * A spin lock: glibc 2.34 moved pthread's symbols to another library, and this must load with both.
 */
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
		for (uint32_t k = 0; sim_gpu_mig(i, NULL) && k < sim_data.gpus[i].n_mig; k++) {
			struct nvml_handle *mig = &state.migs[state.n_migs];

			if (!sim_mig_visible(i, k))
				continue;
			*mig = (struct nvml_handle){
				.gpu = gpu->gpu, .mig = &sim_data.gpus[i].mig[k], .parent = gpu, .index = gpu->n_mig
			};
			gpu->migs[gpu->n_mig++] = mig;
			state.n_migs++;
			if (gpu->n_instances == 0 || gpu->instances[gpu->n_instances - 1].mig->gi != mig->mig->gi)
				gpu->instances[gpu->n_instances++] = (struct nvml_gpu_instance){ gpu, mig->mig };
		}
	}
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
		return NVML_UNKNOWN; /* the real library returns this if the device cgroup refuses */
	case SIM_ACCESS_MODE:
		return NVML_NO_PERMISSION;
	case SIM_ACCESS_YES:
		break;
	}
	if (!sim_versions_agree())
		return NVML_LIB_RM_VERSION_MISMATCH;
	enumerate();
	return NVML_SUCCESS;
}

ENTRY(nvmlInit_v2, void)
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

ENTRY(nvmlInitWithFlags, unsigned int flags)
{
	(void)flags;
	return nvmlInit_v2();
}

ENTRY(nvmlShutdown, void)
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

/* --- checks at the start of every function --- */

static bool is_handle(const struct nvml_handle *device)
{
	return (device >= state.gpus && device < state.gpus + state.n_gpus) ||
	       (device >= state.migs && device < state.migs + state.n_migs);
}

bool nvml_is_lost(const struct nvml_handle *device)
{
	return sim_gpu_lost((uint32_t)(device->gpu - sim_data.gpus));
}

nvmlReturn_t nvml_check_device(const struct nvml_handle *device, const void *out)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!is_handle(device) || !out)
		return NVML_INVALID_ARGUMENT;
	return nvml_is_lost(device) ? NVML_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t nvml_check_gpu(const struct nvml_handle *device, const void *out)
{
	nvmlReturn_t rc = nvml_check_device(device, out);

	return rc == NVML_SUCCESS && device->mig ? NVML_NOT_SUPPORTED : rc;
}

nvmlReturn_t nvml_check_mig(const struct nvml_handle *device, const void *out)
{
	nvmlReturn_t rc = nvml_check_device(device, out);

	return rc == NVML_SUCCESS && !device->mig ? NVML_NOT_SUPPORTED : rc;
}

nvmlReturn_t nvml_give_text(char *out, unsigned int size, const volatile char *text)
{
	return sim_copy(out, size, text) ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

/* --- the system --- */

ENTRY(nvmlSystemGetDriverVersion, char *version, unsigned int length)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	return version ? nvml_give_text(version, length, sim_data.driver_version) : NVML_INVALID_ARGUMENT;
}

ENTRY(nvmlSystemGetNVMLVersion, char *version, unsigned int length)
{
	char text[64], driver[32];

	if (!version)
		return NVML_INVALID_ARGUMENT;
	(void)sim_copy(driver, sizeof(driver), sim_data.driver_version);
	(void)snprintf(text, sizeof(text), "%u.%s", sim_data.cuda / 1000, driver);
	return nvml_give_text(version, length, text);
}

ENTRY(nvmlSystemGetCudaDriverVersion_v2, int *version)
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

ENTRY(nvmlUnitGetCount, unsigned int *count)
{
	return give_zero(count);
}

ENTRY(nvmlGetExcludedDeviceCount, unsigned int *count)
{
	return give_zero(count);
}

/* The first argument of a process's command line. */
ENTRY(nvmlSystemGetProcessName, unsigned int pid, char *name, unsigned int length)
{
	char path[32], text[1024];
	size_t n;
	FILE *file;

	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!name || length == 0)
		return NVML_INVALID_ARGUMENT;
	(void)snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	file = fopen(path, "re");
	if (!file)
		return NVML_NOT_FOUND;
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	(void)fclose(file);
	(void)sim_copy(name, length, text);
	return NVML_SUCCESS;
}

/* "r550_00": the branch that the driver was built from. */
ENTRY(nvmlSystemGetDriverBranch, nvmlDriverBranch_t *branch, unsigned int length)
{
	char version[32];

	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!branch)
		return NVML_INVALID_ARGUMENT;
	if (branch->version != NVML_VERSION(*branch, 1))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	(void)sim_copy(version, sizeof(version), sim_data.driver_version);
	version[strcspn(version, ".")] = '\0';
	(void)snprintf(branch->branch, length < sizeof(branch->branch) ? length : sizeof(branch->branch), "r%s_00",
		       version);
	return NVML_SUCCESS;
}

/* --- handles --- */

ENTRY(nvmlDeviceGetCount_v2, unsigned int *count)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!count)
		return NVML_INVALID_ARGUMENT;
	*count = state.n_gpus;
	return NVML_SUCCESS;
}
ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2, unsigned int *count);

ENTRY(nvmlDeviceGetHandleByIndex_v2, unsigned int index, nvmlDevice_t *device)
{
	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!device || index >= state.n_gpus)
		return NVML_INVALID_ARGUMENT;
	if (nvml_is_lost(&state.gpus[index]))
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
	if (nvml_is_lost(handle))
		return NVML_GPU_IS_LOST;
	*device = handle;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
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

ENTRY(nvmlDeviceGetHandleBySerial, const char *serial, nvmlDevice_t *device)
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

/*
 * Parses "00000000:1B:00.0", "0000:1b:00.0" or "1b:00.0": hexadecimal numbers separated by colons.
 */
static bool parse_nvml_bus_id(const char *text, unsigned long numbers[3])
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

ENTRY(nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, nvmlDevice_t *device)
{
	unsigned long numbers[3];

	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (!bus_id || !device || !parse_nvml_bus_id(bus_id, numbers))
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < state.n_gpus; i++) {
		const volatile struct sim_data_gpu *gpu = state.gpus[i].gpu;

		if (gpu->domain == numbers[0] && gpu->bus == numbers[1] && gpu->device == numbers[2])
			return give_handle(&state.gpus[i], device);
	}
	return NVML_NOT_FOUND;
}
ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, nvmlDevice_t *device);

/* --- properties of a GPU --- */

ENTRY(nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned int length)
{
	nvmlReturn_t rc = nvml_check_device(device, name);
	char gpu[96], profile[32], text[160];

	if (rc != NVML_SUCCESS)
		return rc;
	(void)sim_copy(gpu, sizeof(gpu), device->gpu->name);
	if (!device->mig)
		return nvml_give_text(name, length, gpu);
	(void)sim_copy(profile, sizeof(profile), device->mig->profile);
	(void)snprintf(text, sizeof(text), "%s MIG %s", gpu, profile);
	return nvml_give_text(name, length, text);
}

GIVE_TEXT(nvmlDeviceGetUUID, nvml_check_device, device->mig ? device->mig->uuid : device->gpu->uuid)
GIVE_TEXT(nvmlDeviceGetSerial, nvml_check_gpu, device->gpu->serial)
GIVE_TEXT(nvmlDeviceGetVbiosVersion, nvml_check_gpu, device->gpu->vbios)
GIVE_TEXT(nvmlDeviceGetBoardPartNumber, nvml_check_gpu, "900-SIMULATED-000")
GIVE_TEXT(nvmlDeviceGetInforomImageVersion, nvml_check_gpu, "G520.0200.00.05")

/* The buffer has at least 80 bytes. */
ENTRY(nvmlDeviceGetGspFirmwareVersion, nvmlDevice_t device, char *version)
{
	nvmlReturn_t rc = nvml_check_gpu(device, version);

	if (rc != NVML_SUCCESS)
		return rc;
	return sim_data.firmware ? nvml_give_text(version, 80, sim_data.module_version) : NVML_NOT_SUPPORTED;
}

GIVE_NUMBER(nvmlDeviceGetMinorNumber, nvml_check_gpu, unsigned int, device->gpu->minor)
GIVE_NUMBER(nvmlDeviceGetIndex, nvml_check_device, unsigned int, device->index)
GIVE_NUMBER(nvmlDeviceGetBrand, nvml_check_device, unsigned int, device->gpu->brand)
GIVE_NUMBER(nvmlDeviceGetArchitecture, nvml_check_device, unsigned int, device->gpu->arch)
GIVE_NUMBER(nvmlDeviceGetNumGpuCores, nvml_check_gpu, unsigned int, device->gpu->multiprocessors * 128)
GIVE_NUMBER(nvmlDeviceGetMultiGpuBoard, nvml_check_gpu, unsigned int, 0)
GIVE_NUMBER(nvmlDeviceGetBoardId, nvml_check_gpu, unsigned int, device->gpu->bus << 8)

ENTRY(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int *major, int *minor)
{
	nvmlReturn_t rc = nvml_check_device(device, major);

	if (rc != NVML_SUCCESS || !minor)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*major = (int)device->gpu->cc_major;
	*minor = (int)device->gpu->cc_minor;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetAddressingMode, nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode)
{
	nvmlReturn_t rc = nvml_check_gpu(device, mode);

	if (rc != NVML_SUCCESS)
		return rc;
	if (mode->version != NVML_ADDRESSING_VERSION)
		return NVML_ARGUMENT_VERSION_MISMATCH;
	if (!device->gpu->coherent)
		return NVML_NOT_SUPPORTED;
	mode->value = NVML_ADDRESSING_ATS;
	return NVML_SUCCESS;
}

void nvml_pci_info(const volatile struct sim_data_gpu *gpu, nvmlPciInfo_t *ret_pci)
{
	*ret_pci = (nvmlPciInfo_t){ .domain = gpu->domain,
				    .bus = gpu->bus,
				    .device = gpu->device,
				    .pciDeviceId = gpu->pci_id,
				    .pciSubSystemId = gpu->pci_subsystem_id };
	(void)snprintf(ret_pci->busIdLegacy, sizeof(ret_pci->busIdLegacy), "%04X:%02X:%02X.0", gpu->domain & 0xffff,
		       gpu->bus & 0xff, gpu->device & 0xff);
	(void)snprintf(ret_pci->busId, sizeof(ret_pci->busId), "%08X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->device);
}

ENTRY(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	nvmlReturn_t rc = nvml_check_device(device, pci);

	if (rc == NVML_SUCCESS)
		nvml_pci_info(device->gpu, pci);
	return rc;
}

nvmlReturn_t nvml_give_pci_v2(nvmlReturn_t rc, const nvmlPciInfo_t *full, nvmlPciInfo_v2_t *pci)
{
	if (rc != NVML_SUCCESS)
		return rc;
	*pci = (nvmlPciInfo_v2_t){ .domain = full->domain,
				   .bus = full->bus,
				   .device = full->device,
				   .pciDeviceId = full->pciDeviceId,
				   .pciSubSystemId = full->pciSubSystemId };
	memcpy(pci->busId, full->busIdLegacy, sizeof(pci->busId));
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetPciInfo_v2, nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
	nvmlPciInfo_t full;

	return nvml_give_pci_v2(pci ? nvmlDeviceGetPciInfo_v3(device, &full) : NVML_INVALID_ARGUMENT, &full, pci);
}
ALIAS(nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v2, nvmlDevice_t device, nvmlPciInfo_v2_t *pci);

/* --- for the simulated nvidia-smi --- */

/*
 * Until Volta all GPUs that NVLinks connect are reset together; on Ampere also where NVSwitches
 * connect them and no fabric manager runs.
 */
static bool is_reset_alone(const volatile struct sim_data_gpu *gpu)
{
	enum { AMPERE = 7 };

	return gpu->arch > AMPERE || (gpu->arch == AMPERE && (sim_data.n_switches == 0 || sim_data.fabricmanager));
}

/* Returns whether a GPU has an NVLink to the other one. */
static bool has_link_to(const volatile struct sim_data_gpu *gpu, uint32_t other)
{
	for (uint32_t i = 0; i < gpu->n_links; i++) {
		if (gpu->links[i] == other || (gpu->links[i] == SIM_LINK_SWITCH && sim_data.gpus[other].n_links > 0))
			return true;
	}
	return false;
}

/* The bits of `indices` that mean GPUs of the host, as sim_data numbers them. */
static uint32_t to_host_bits(uint32_t indices)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < state.n_gpus; i++) {
		if (indices >> i & 1u)
			bits |= 1u << (state.gpus[i].gpu - sim_data.gpus);
	}
	return bits;
}

/*
 * Resets the GPU with that index, as one of those in `together`: writes a line to the kernel log,
 * which ends the effect of earlier ones. RESET_REQUIRED: *peer would have to be reset together with
 * it.
 */
ENTRY(graftSimResetGpu, unsigned int index, unsigned int together, nvmlPciInfo_t *pci, nvmlPciInfo_t *peer)
{
	uint32_t self, bits;

	if (state.references == 0)
		return NVML_UNINITIALIZED;
	if (index >= state.n_gpus || !pci || !peer)
		return NVML_INVALID_ARGUMENT;
	nvml_pci_info(state.gpus[index].gpu, pci);
	if (state.gpus[index].gpu->lost)
		return NVML_GPU_IS_LOST;
	self = (uint32_t)(state.gpus[index].gpu - sim_data.gpus);
	bits = to_host_bits(together) | 1u << self;
	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		if ((bits >> i & 1u) || is_reset_alone(&sim_data.gpus[self]) || !has_link_to(&sim_data.gpus[self], i))
			continue;
		nvml_pci_info(&sim_data.gpus[i], peer);
		return NVML_RESET_REQUIRED;
	}
	return sim_log_reset(self) ? NVML_SUCCESS : NVML_NO_PERMISSION;
}
