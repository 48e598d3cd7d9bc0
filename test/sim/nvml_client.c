/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_client: asks libnvidia-ml.so.1 what nvidia-smi does not: every name that the stack looks up exists, handles by UUID and bus id,
 * MIG devices and their instances, links, distances, events, small buffers, misuse. Prints one line for each MIG device and, of each GPU,
 * its links and its fabric; what is not right is a line that begins with 'line' or 'missing', and exit status 1. With a number
 * of milliseconds it prints the events that arrive until there was none for that long.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_api.h"

static void *library;

static void *find(const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		(void)printf("missing: %s\n", name);
	return symbol;
}

#define CALL(name, type, ...)                                                 \
	({                                                                    \
		void *symbol_ = find(name);                                   \
		nvmlReturn_t(*function_) type = NULL;                         \
		memcpy(&function_, &symbol_, sizeof(symbol_));                \
		function_ ? function_(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND; \
	})

#define EXPECT(want, call)                                                                        \
	do {                                                                                      \
		int got_ = (int)(call);                                                           \
		if (got_ != (int)(want)) {                                                        \
			(void)printf("line %d: %d instead of %d\n", __LINE__, got_, (int)(want)); \
			failed = true;                                                            \
		}                                                                                 \
	} while (0)

static bool failed;

/* What the container stack, device plugins and monitoring look up by name. */
static void check_names(void)
{
	static const char *const names[] = {
		"nvmlInit",
		"nvmlInit_v2",
		"nvmlInitWithFlags",
		"nvmlShutdown",
		"nvmlErrorString",
		"nvmlSystemGetDriverVersion",
		"nvmlSystemGetNVMLVersion",
		"nvmlSystemGetCudaDriverVersion",
		"nvmlSystemGetCudaDriverVersion_v2",
		"nvmlDeviceGetCount",
		"nvmlDeviceGetCount_v2",
		"nvmlDeviceGetHandleByIndex",
		"nvmlDeviceGetHandleByIndex_v2",
		"nvmlDeviceGetHandleByUUID",
		"nvmlDeviceGetHandleBySerial",
		"nvmlDeviceGetHandleByPciBusId",
		"nvmlDeviceGetHandleByPciBusId_v2",
		"nvmlDeviceGetMinorNumber",
		"nvmlDeviceGetPciInfo",
		"nvmlDeviceGetPciInfo_v2",
		"nvmlDeviceGetPciInfo_v3",
		"nvmlDeviceGetUUID",
		"nvmlDeviceGetName",
		"nvmlDeviceGetBrand",
		"nvmlDeviceGetIndex",
		"nvmlDeviceGetArchitecture",
		"nvmlDeviceGetAddressingMode",
		"nvmlDeviceGetCudaComputeCapability",
		"nvmlDeviceGetMigMode",
		"nvmlDeviceGetMaxMigDeviceCount",
		"nvmlDeviceGetMigDeviceHandleByIndex",
		"nvmlDeviceGetGpuInstanceId",
		"nvmlDeviceGetComputeInstanceId",
		"nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
		"nvmlDeviceIsMigDeviceHandle",
		"nvmlDeviceGetAttributes",
		"nvmlDeviceGetAttributes_v2",
		"nvmlDeviceGetMemoryInfo",
		"nvmlDeviceGetMemoryInfo_v2",
		"nvmlDeviceGetUtilizationRates",
		"nvmlDeviceGetTemperature",
		"nvmlDeviceGetPersistenceMode",
		"nvmlDeviceGetPowerUsage",
		"nvmlDeviceGetComputeRunningProcesses_v3",
		"nvmlEventSetCreate",
		"nvmlEventSetWait_v2",
		"nvmlDeviceRegisterEvents",
		"nvmlEventSetWait",
		"nvmlEventSetFree",
		"nvmlDeviceGetSupportedEventTypes",
		"nvmlDeviceGetGpuInstanceById",
		"nvmlDeviceGetGpuInstances",
		"nvmlDeviceGetGpuInstanceProfileInfo",
		"nvmlDeviceGetGpuInstanceProfileInfoV",
		"nvmlDeviceGetGpuInstancePossiblePlacements",
		"nvmlDeviceGetGpuInstanceRemainingCapacity",
		"nvmlDeviceCreateGpuInstance",
		"nvmlGpuInstanceGetInfo",
		"nvmlGpuInstanceGetComputeInstances",
		"nvmlGpuInstanceGetComputeInstanceById",
		"nvmlGpuInstanceGetComputeInstanceProfileInfo",
		"nvmlGpuInstanceGetComputeInstanceProfileInfoV",
		"nvmlGpuInstanceCreateComputeInstance",
		"nvmlGpuInstanceDestroy",
		"nvmlComputeInstanceGetInfo",
		"nvmlComputeInstanceGetInfo_v2",
		"nvmlComputeInstanceDestroy",
		"nvmlDeviceSetMigMode",
		"nvmlDeviceGetTopologyCommonAncestor",
		"nvmlDeviceGetTopologyNearestGpus",
		"nvmlDeviceGetP2PStatus",
		"nvmlDeviceGetNvLinkState",
		"nvmlDeviceGetNvLinkVersion",
		"nvmlDeviceGetNvLinkCapability",
		"nvmlDeviceGetNvLinkRemotePciInfo",
		"nvmlDeviceGetNvLinkRemotePciInfo_v2",
		"nvmlDeviceGetNvLinkRemoteDeviceType",
		"nvmlDeviceGetCpuAffinity",
		"nvmlDeviceGetMemoryAffinity",
		"nvmlDeviceGetNumaNodeId",
		"nvmlDeviceGetGpuFabricInfo",
		"nvmlDeviceGetGpuFabricInfoV",
		"nvmlDeviceGetPlatformInfo",
		"nvmlDeviceGetFieldValues",
		"nvmlDeviceGetVirtualizationMode",
		"nvmlDeviceGetTotalEccErrors",
		"nvmlDeviceGetRemappedRows",
		"nvmlDeviceGetRetiredPages",
		"nvmlDeviceGetTotalEnergyConsumption",
		"nvmlDeviceGetSamples",
		"nvmlDeviceGetVgpuMetadata",
		"nvmlDeviceGetHandleByUUIDV",
		"nvmlSystemGetConfComputeState",
		"nvmlSystemGetProcessName",
		"nvmlGpmQueryDeviceSupport",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		failed = !find(names[i]) || failed;
}

/* What the library does not have is not there, and what a GPU does not have is refused. */
static void check_absent(void)
{
	EXPECT(1, dlsym(library, "nvmlDeviceGetSoulInfo") == NULL);
	EXPECT(NVML_NOT_SUPPORTED, CALL("nvmlGpmQueryDeviceSupport", (void *, void *), NULL, NULL));
}

static void check_misuse(void)
{
	unsigned int number;
	nvmlDevice_t device = NULL;
	char text[96];

	EXPECT(NVML_UNINITIALIZED, CALL("nvmlDeviceGetCount_v2", (unsigned int *), &number));
	EXPECT(NVML_UNINITIALIZED, CALL("nvmlShutdown", (void)));
	EXPECT(NVML_SUCCESS, CALL("nvmlInit_v2", (void)));
	EXPECT(NVML_SUCCESS, CALL("nvmlInit", (void)));
	EXPECT(NVML_SUCCESS, CALL("nvmlShutdown", (void)));
	EXPECT(NVML_INVALID_ARGUMENT, CALL("nvmlDeviceGetCount_v2", (unsigned int *), NULL));
	EXPECT(NVML_INVALID_ARGUMENT,
	       CALL("nvmlDeviceGetHandleByIndex_v2", (unsigned int, nvmlDevice_t *), 99, &device));
	EXPECT(NVML_NOT_FOUND, CALL("nvmlDeviceGetHandleByUUID", (const char *, nvmlDevice_t *), "GPU-none", &device));
	EXPECT(NVML_INVALID_ARGUMENT, CALL("nvmlDeviceGetUUID", (nvmlDevice_t, char *, unsigned int),
					   (nvmlDevice_t)(void *)&number, text, sizeof(text)));
	EXPECT(NVML_INSUFFICIENT_SIZE, CALL("nvmlSystemGetDriverVersion", (char *, unsigned int), text, 4));
}

static void check_gpu(nvmlDevice_t device, unsigned int index)
{
	nvmlMemory_v2_t memory = { .version = 2 };
	nvmlPciInfo_t pci;
	nvmlPciInfo_v2_t old;
	nvmlDevice_t same = NULL;
	unsigned int number = 99;
	char uuid[96];

	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetUUID", (nvmlDevice_t, char *, unsigned int), device, uuid, sizeof(uuid)));
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetHandleByUUID", (const char *, nvmlDevice_t *), uuid, &same));
	EXPECT(1, same == device);
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetPciInfo_v3", (nvmlDevice_t, nvmlPciInfo_t *), device, &pci));
	EXPECT(0x10de, pci.pciDeviceId & 0xffff);
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetPciInfo", (nvmlDevice_t, nvmlPciInfo_v2_t *), device, &old));
	EXPECT(0, strcmp(old.busId, pci.busIdLegacy));
	same = NULL;
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetHandleByPciBusId_v2", (const char *, nvmlDevice_t *), pci.busId, &same));
	EXPECT(1, same == device);
	same = NULL;
	EXPECT(pci.domain == 0 ? NVML_SUCCESS : NVML_NOT_FOUND,
	       CALL("nvmlDeviceGetHandleByPciBusId", (const char *, nvmlDevice_t *), pci.busId + 9, &same));
	EXPECT(NVML_INVALID_ARGUMENT,
	       CALL("nvmlDeviceGetHandleByPciBusId", (const char *, nvmlDevice_t *), "1b", &same));
	EXPECT(NVML_INVALID_ARGUMENT,
	       CALL("nvmlDeviceGetHandleByPciBusId", (const char *, nvmlDevice_t *), "0:1b:0", &same));
	EXPECT(NVML_INVALID_ARGUMENT, CALL("nvmlDeviceGetHandleByPciBusId", (const char *, nvmlDevice_t *), "", &same));
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetIndex", (nvmlDevice_t, unsigned int *), device, &number));
	EXPECT(index, number);
	EXPECT(NVML_ARGUMENT_VERSION_MISMATCH,
	       CALL("nvmlDeviceGetMemoryInfo_v2", (nvmlDevice_t, nvmlMemory_v2_t *), device, &memory));
	memory.version = sizeof(memory) | 2u << 24;
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetMemoryInfo_v2", (nvmlDevice_t, nvmlMemory_v2_t *), device, &memory));
	EXPECT(1, memory.total == memory.used + memory.free && memory.total > (1ull << 32));
	EXPECT(NVML_NOT_SUPPORTED, CALL("nvmlDeviceGetGpuInstanceId", (nvmlDevice_t, unsigned int *), device, &number));
}

/* No two GPUs have the same number on their boards. */
static void check_serial(nvmlDevice_t device)
{
	nvmlDevice_t same = NULL;
	char serial[32];

	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetSerial", (nvmlDevice_t, char *, unsigned int), device, serial, sizeof(serial)));
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetHandleBySerial", (const char *, nvmlDevice_t *), serial, &same));
	EXPECT(1, same == device);
}

/* What Slurm's nodes ask for: the clocks that can be set. */
static void check_clocks(nvmlDevice_t device)
{
	unsigned int memory, clocks[200], n = 1, most = 0;

	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetSupportedMemoryClocks", (nvmlDevice_t, unsigned int *, unsigned int *),
				  device, &n, &memory));
	EXPECT(1, n);
	EXPECT(NVML_INSUFFICIENT_SIZE,
	       CALL("nvmlDeviceGetSupportedGraphicsClocks",
		    (nvmlDevice_t, unsigned int, unsigned int *, unsigned int *), device, memory, &n, clocks));
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetSupportedGraphicsClocks",
		    (nvmlDevice_t, unsigned int, unsigned int *, unsigned int *), device, memory, &n, clocks));
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetMaxClockInfo", (nvmlDevice_t, unsigned int, unsigned int *), device, 0, &most));
	EXPECT(most, clocks[0]);
	EXPECT(345, clocks[n - 1]);
	EXPECT(NVML_NOT_FOUND,
	       CALL("nvmlDeviceGetSupportedGraphicsClocks",
		    (nvmlDevice_t, unsigned int, unsigned int *, unsigned int *), device, memory + 1, &n, clocks));
}

static void check_pcie(nvmlDevice_t device)
{
	static const unsigned int generations[] = { [4] = 3, [5] = 3, [6] = 3, [7] = 4, [8] = 4, [9] = 5, [10] = 5 };
	unsigned int arch = 0, generation = 0, speed = 0;

	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetArchitecture", (nvmlDevice_t, unsigned int *), device, &arch));
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetMaxPcieLinkGeneration", (nvmlDevice_t, unsigned int *), device, &generation));
	EXPECT(generations[arch], generation);
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetPcieSpeed", (nvmlDevice_t, unsigned int *), device, &speed));
	EXPECT(generation == 5 ? 32000 : generation == 4 ? 16000 : 8000, speed);
}

/* --- links --- */

static void check_field(nvmlDevice_t device, unsigned int field, unsigned int want)
{
	nvmlFieldValue_t value = { .fieldId = field };

	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetFieldValues", (nvmlDevice_t, int, nvmlFieldValue_t *), device, 1, &value));
	EXPECT(NVML_SUCCESS, value.nvmlReturn);
	EXPECT(want, value.value.uiVal);
}

/* Links are up and lead to a switch or to another GPU that leads back. */
static void check_links(nvmlDevice_t device)
{
	unsigned int active, kind, version, n = 0;
	nvmlPciInfo_t remote, own;
	nvmlDevice_t peer = NULL;

	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetPciInfo_v3", (nvmlDevice_t, nvmlPciInfo_t *), device, &own));
	while (CALL("nvmlDeviceGetNvLinkState", (nvmlDevice_t, unsigned int, unsigned int *), device, n, &active) ==
	       NVML_SUCCESS) {
		EXPECT(1, active);
		EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetNvLinkVersion", (nvmlDevice_t, unsigned int, unsigned int *),
					  device, n, &version));
		EXPECT(1, version >= 2 && version <= 5);
		EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetNvLinkRemotePciInfo_v2",
					  (nvmlDevice_t, unsigned int, nvmlPciInfo_t *), device, n, &remote));
		EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetNvLinkRemoteDeviceType",
					  (nvmlDevice_t, unsigned int, unsigned int *), device, n, &kind));
		EXPECT(1, kind == 0 || kind == 2);
		EXPECT(kind == 0 ? NVML_SUCCESS : NVML_NOT_FOUND,
		       CALL("nvmlDeviceGetHandleByPciBusId_v2", (const char *, nvmlDevice_t *), remote.busId, &peer));
		EXPECT(0, strcmp(remote.busId, own.busId) == 0);
		n++;
	}
	check_field(device, 91, n);
	EXPECT(n > 0 ? NVML_INVALID_ARGUMENT : NVML_NOT_SUPPORTED,
	       CALL("nvmlDeviceGetNvLinkState", (nvmlDevice_t, unsigned int, unsigned int *), device, n, &active));
	(void)printf("%u links of version %u\n", n, n > 0 ? version : 0);
}

/* Two ways to ask how far GPUs are from each other have the same answer. */
static void check_distances(nvmlDevice_t device, unsigned int count)
{
	static const unsigned int levels[] = { 10, 20, 30, 40, 50 };
	unsigned int level, n, total = 0;
	nvmlDevice_t near[32], other;
	unsigned long cpus[64];

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		n = 32;
		EXPECT(NVML_SUCCESS,
		       CALL("nvmlDeviceGetTopologyNearestGpus",
			    (nvmlDevice_t, unsigned int, unsigned int *, nvmlDevice_t *), device, levels[i], &n, near));
		total += n;
		for (unsigned int k = 0; k < n; k++) {
			EXPECT(NVML_SUCCESS,
			       CALL("nvmlDeviceGetTopologyCommonAncestor", (nvmlDevice_t, nvmlDevice_t, unsigned int *),
				    device, near[k], &level));
			EXPECT(levels[i], level);
		}
	}
	EXPECT(count - 1, total);
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetTopologyCommonAncestor", (nvmlDevice_t, nvmlDevice_t, unsigned int *),
				  device, device, &level));
	EXPECT(0, level);
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetHandleByIndex_v2", (unsigned int, nvmlDevice_t *), count - 1, &other));
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetP2PStatus", (nvmlDevice_t, nvmlDevice_t, unsigned int, unsigned int *),
				  device, other, 0, &level));
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetCpuAffinity", (nvmlDevice_t, unsigned int, unsigned long *), device, 64, cpus));
	EXPECT(0, cpus[0] == 0 && cpus[1] == 0);
}

static void check_versions(nvmlDevice_t device)
{
	nvmlGpuFabricInfo_v2_t fabric = { .version = 1 };
	nvmlGpuFabricInfo_t first;
	nvmlGpuFabricInfo_v3_t third = { .version = NVML_VERSION(third, 3) };

	EXPECT(NVML_ARGUMENT_VERSION_MISMATCH,
	       CALL("nvmlDeviceGetGpuFabricInfoV", (nvmlDevice_t, nvmlGpuFabricInfo_v2_t *), device, &fabric));
	fabric.version = NVML_VERSION(fabric, 2);
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetGpuFabricInfoV", (nvmlDevice_t, nvmlGpuFabricInfo_v2_t *), device, &fabric));
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetGpuFabricInfoV", (nvmlDevice_t, nvmlGpuFabricInfo_v3_t *), device, &third));
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetGpuFabricInfo", (nvmlDevice_t, nvmlGpuFabricInfo_t *), device, &first));
	EXPECT(first.state, fabric.state);
	EXPECT(first.cliqueId, third.cliqueId);
	(void)printf("fabric: state %u, clique %u\n", first.state, first.cliqueId);
}

static void check_events(nvmlDevice_t device)
{
	unsigned long long types = 0;
	nvmlEventSet_t set = NULL;
	nvmlEventData_t event;

	EXPECT(NVML_SUCCESS, CALL("nvmlEventSetCreate", (nvmlEventSet_t *), &set));
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetSupportedEventTypes", (nvmlDevice_t, unsigned long long *), device, &types));
	EXPECT(1, (types & NVML_EVENT_XID) != 0);
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceRegisterEvents", (nvmlDevice_t, unsigned long long, nvmlEventSet_t),
				  device, types, set));
	EXPECT(NVML_NOT_SUPPORTED, CALL("nvmlDeviceRegisterEvents", (nvmlDevice_t, unsigned long long, nvmlEventSet_t),
					device, 1ull << 40, set));
	EXPECT(NVML_TIMEOUT,
	       CALL("nvmlEventSetWait_v2", (nvmlEventSet_t, nvmlEventData_t *, unsigned int), set, &event, 1));
	EXPECT(NVML_SUCCESS, CALL("nvmlEventSetFree", (nvmlEventSet_t), set));
}

/* --- MIG --- */

/*
 * From a MIG device to its GPU instance, from that to its profile and to the compute instance, and
 * back to the device: the way on which device plugins find the name of its profile.
 */
static void check_instances(nvmlDevice_t gpu, nvmlDevice_t mig)
{
	nvmlGpuInstanceProfileInfo_v2_t profile = { .version = NVML_VERSION(profile, 2) };
	nvmlGpuInstance_t instance = NULL, same[8] = { NULL };
	nvmlComputeInstance_t compute = NULL;
	nvmlComputeInstanceProfileInfo_t compute_profile;
	nvmlComputeInstanceInfo_t compute_info;
	unsigned int id, count = 0, slot = 0;
	nvmlGpuInstanceInfo_t info;
	char name[160];

	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetGpuInstanceId", (nvmlDevice_t, unsigned int *), mig, &id));
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetGpuInstanceById", (nvmlDevice_t, unsigned int, nvmlGpuInstance_t *),
				  gpu, id, &instance));
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlGpuInstanceGetInfo", (nvmlGpuInstance_t, nvmlGpuInstanceInfo_t *), instance, &info));
	EXPECT(1, info.device == gpu && info.id == id && info.placement.start + info.placement.size <= 8);
	while (slot < 10 && (CALL("nvmlDeviceGetGpuInstanceProfileInfoV",
				  (nvmlDevice_t, unsigned int, nvmlGpuInstanceProfileInfo_v2_t *), gpu, slot,
				  &profile) != NVML_SUCCESS ||
			     profile.id != info.profileId))
		slot++;
	EXPECT(1, slot < 10);
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetName", (nvmlDevice_t, char *, unsigned int), mig, name, sizeof(name)));
	EXPECT(1, strstr(name, profile.name + strlen("MIG ")) != NULL);
	(void)printf("%s: %s at %u:%u\n", strstr(name, "MIG"), profile.name, info.placement.start, info.placement.size);
	EXPECT(NVML_SUCCESS,
	       CALL("nvmlDeviceGetGpuInstances", (nvmlDevice_t, unsigned int, nvmlGpuInstance_t *, unsigned int *), gpu,
		    info.profileId, same, &count));
	EXPECT(1, count >= 1);
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetComputeInstanceId", (nvmlDevice_t, unsigned int *), mig, &id));
	EXPECT(NVML_SUCCESS, CALL("nvmlGpuInstanceGetComputeInstanceById",
				  (nvmlGpuInstance_t, unsigned int, nvmlComputeInstance_t *), instance, id, &compute));
	EXPECT(NVML_SUCCESS, CALL("nvmlComputeInstanceGetInfo_v2", (nvmlComputeInstance_t, nvmlComputeInstanceInfo_t *),
				  compute, &compute_info));
	EXPECT(1, compute_info.device == gpu && compute_info.gpuInstance == instance && compute_info.id == id);
	EXPECT(NVML_SUCCESS, CALL("nvmlGpuInstanceGetComputeInstanceProfileInfo",
				  (nvmlGpuInstance_t, unsigned int, unsigned int, nvmlComputeInstanceProfileInfo_t *),
				  instance, compute_info.profileId, 0, &compute_profile));
	EXPECT(compute_info.placement.size, compute_profile.sliceCount);
}

static void check_mig(nvmlDevice_t gpu)
{
	unsigned int current = 0, pending, flag = 0, most = 99;
	nvmlDeviceAttributes_t attributes;
	nvmlDevice_t mig, parent;
	nvmlReturn_t mode = CALL("nvmlDeviceGetMigMode", (nvmlDevice_t, unsigned int *, unsigned int *), gpu, &current,
				 &pending);

	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetMaxMigDeviceCount", (nvmlDevice_t, unsigned int *), gpu, &most));
	EXPECT(1, mode == NVML_SUCCESS && current == 1 ? most == 7 || most == 4 : most == 0);
	EXPECT(mode == NVML_SUCCESS && current == 1 ? NVML_NOT_FOUND : NVML_NOT_SUPPORTED,
	       CALL("nvmlDeviceGetGpuInstanceById", (nvmlDevice_t, unsigned int, nvmlGpuInstance_t *), gpu, 14,
		    &(nvmlGpuInstance_t){ NULL }));
	if (mode != NVML_SUCCESS || current == 0)
		return;
	for (unsigned int i = 0;; i++) {
		nvmlReturn_t rc = CALL("nvmlDeviceGetMigDeviceHandleByIndex",
				       (nvmlDevice_t, unsigned int, nvmlDevice_t *), gpu, i, &mig);

		if (rc == NVML_NOT_FOUND)
			break;
		EXPECT(NVML_SUCCESS, rc);
		EXPECT(NVML_SUCCESS, CALL("nvmlDeviceIsMigDeviceHandle", (nvmlDevice_t, unsigned int *), mig, &flag));
		EXPECT(1, flag);
		EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
					  (nvmlDevice_t, nvmlDevice_t *), mig, &parent));
		EXPECT(1, parent == gpu);
		EXPECT(NVML_SUCCESS,
		       CALL("nvmlDeviceGetAttributes_v2", (nvmlDevice_t, nvmlDeviceAttributes_t *), mig, &attributes));
		EXPECT(1, attributes.memorySizeMB > 1024 && attributes.computeInstanceSliceCount >= 1 &&
			      attributes.multiprocessorCount >= 8);
		EXPECT(NVML_NOT_SUPPORTED,
		       CALL("nvmlDeviceGetMinorNumber", (nvmlDevice_t, unsigned int *), mig, &flag));
		check_instances(gpu, mig);
	}
}

/* With an argument: prints the events of all GPUs for that many milliseconds. */
static void print_events(unsigned int timeout_ms)
{
	unsigned int count = 0, index;
	nvmlEventSet_t set = NULL;
	nvmlEventData_t event;
	nvmlDevice_t device;

	EXPECT(NVML_SUCCESS, CALL("nvmlInit_v2", (void)));
	EXPECT(NVML_SUCCESS, CALL("nvmlEventSetCreate", (nvmlEventSet_t *), &set));
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetCount_v2", (unsigned int *), &count));
	for (unsigned int i = 0; i < count; i++) {
		EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetHandleByIndex_v2", (unsigned int, nvmlDevice_t *), i, &device));
		EXPECT(NVML_SUCCESS,
		       CALL("nvmlDeviceRegisterEvents", (nvmlDevice_t, unsigned long long, nvmlEventSet_t), device,
			    NVML_EVENT_XID, set));
	}
	(void)puts("waiting");
	(void)fflush(stdout);
	while (CALL("nvmlEventSetWait_v2", (nvmlEventSet_t, nvmlEventData_t *, unsigned int), set, &event,
		    timeout_ms) == NVML_SUCCESS) {
		nvmlReturn_t rc = CALL("nvmlDeviceGetIndex", (nvmlDevice_t, unsigned int *), event.device, &index);

		if (rc == NVML_SUCCESS)
			(void)printf("GPU %u: Xid %llu, instances %d/%d\n", index, event.eventData,
				     (int)event.gpuInstanceId, (int)event.computeInstanceId);
		else
			(void)printf("a lost GPU: Xid %llu\n", event.eventData);
		(void)fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	unsigned int count = 0;
	nvmlDevice_t device;

	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library) {
		(void)printf("%s\n", dlerror());
		return 1;
	}
	if (argc > 1) {
		print_events((unsigned int)strtoul(argv[1], NULL, 10));
		return failed;
	}
	check_names();
	check_absent();
	check_misuse();
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetCount_v2", (unsigned int *), &count));
	for (unsigned int i = 0; i < count; i++) {
		EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetHandleByIndex_v2", (unsigned int, nvmlDevice_t *), i, &device));
		check_gpu(device, i);
		check_distances(device, count);
		check_serial(device);
		check_clocks(device);
		check_pcie(device);
		check_links(device);
		check_versions(device);
		check_events(device);
		check_mig(device);
	}
	(void)CALL("nvmlShutdown", (void));
	return failed;
}
