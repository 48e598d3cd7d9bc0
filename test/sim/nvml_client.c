/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_client: asks libnvidia-ml.so.1 what nvidia-smi does not: every name that the stack looks up exists, handles by UUID and bus id,
 * parents of MIG devices, small buffers, misuse. Silent when all is right; otherwise one line says what is not.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
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
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		failed = !find(names[i]) || failed;
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

static void check_mig(nvmlDevice_t gpu)
{
	unsigned int current = 0, pending, flag = 0;
	nvmlDeviceAttributes_t attributes;
	nvmlDevice_t mig, parent;

	if (CALL("nvmlDeviceGetMigMode", (nvmlDevice_t, unsigned int *, unsigned int *), gpu, &current, &pending) !=
		NVML_SUCCESS ||
	    current == 0)
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
	}
}

int main(void)
{
	unsigned int count = 0;
	nvmlDevice_t device;

	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library) {
		(void)printf("%s\n", dlerror());
		return 1;
	}
	check_names();
	check_misuse();
	EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetCount_v2", (unsigned int *), &count));
	for (unsigned int i = 0; i < count; i++) {
		EXPECT(NVML_SUCCESS, CALL("nvmlDeviceGetHandleByIndex_v2", (unsigned int, nvmlDevice_t *), i, &device));
		check_gpu(device, i);
		check_mig(device);
	}
	(void)CALL("nvmlShutdown", (void));
	return failed;
}
