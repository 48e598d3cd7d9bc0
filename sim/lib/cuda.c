/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda: the simulated libcuda.so.1: enough of the driver interface to count devices, query them,
 * and copy bytes to and from "device" memory, which is memory of this process. Kernels cannot be
 * launched: nothing could execute them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernel_log.h"
#include "mps.h"
#include "visible.h"

#define API __attribute__((visibility("default")))
/* Declares and begins a function of the library. */
#define ENTRY(name, ...)                \
	API CUresult name(__VA_ARGS__); \
	API CUresult name(__VA_ARGS__)
/* Another name for the same function, for programs that were built with an older header. */
#define ALIAS(name, of, ...) API extern CUresult name(__VA_ARGS__) __attribute__((alias(#of)))

#define CUDA_RESULT_LIST(X)                                                                                     \
	X(0, SUCCESS, "no error")                                                                               \
	X(1, ERROR_INVALID_VALUE, "invalid argument")                                                           \
	X(2, ERROR_OUT_OF_MEMORY, "out of memory")                                                              \
	X(3, ERROR_NOT_INITIALIZED, "initialization error")                                                     \
	X(46, ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable")                    \
	X(100, ERROR_NO_DEVICE, "no CUDA-capable device is detected")                                           \
	X(101, ERROR_INVALID_DEVICE, "invalid device ordinal")                                                  \
	X(201, ERROR_INVALID_CONTEXT, "invalid device context")                                                 \
	X(500, ERROR_NOT_FOUND, "named symbol not found")                                                       \
	X(801, ERROR_NOT_SUPPORTED, "operation not supported")                                                  \
	X(803, ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination") \
	X(999, ERROR_UNKNOWN, "unknown error")

typedef enum {
#define X(value, name, text) CUDA_##name = value,
	CUDA_RESULT_LIST(X)
#undef X
} CUresult;
typedef int CUdevice;
typedef struct cuda_context *CUcontext;
typedef unsigned long long CUdeviceptr;
typedef struct {
	char bytes[16];
} CUuuid;

struct device {
	const volatile struct sim_data_gpu *gpu;
	const volatile struct sim_data_mig *mig;
};
struct cuda_context {
	CUdevice device;
};

static struct {
	int ready;
	bool mps;
	unsigned int n_devices;
	struct device devices[SIM_MAX_GPUS];
	struct cuda_context contexts[SIM_MAX_GPUS];
	uint64_t used[SIM_MAX_GPUS];
} state;
static __thread CUcontext current;

/* --- which devices --- */

/* Lists the whole GPUs first, then the MIG devices of GPUs in MIG mode. */
static unsigned int list_visible(struct device all[SIM_MAX_GPUS * (1 + SIM_MAX_MIG)], unsigned int *ret_n_plain)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		if (!sim_gpu_visible(i) || sim_gpu_lost(i))
			continue;
		if (!sim_gpu_mig(i, NULL))
			all[n++] = (struct device){ &sim_data.gpus[i], NULL };
	}
	*ret_n_plain = n;
	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		if (!sim_gpu_visible(i) || sim_gpu_lost(i))
			continue;
		for (uint32_t k = 0; sim_gpu_mig(i, NULL) && k < sim_data.gpus[i].n_mig; k++) {
			if (sim_mig_visible(i, k))
				all[n++] = (struct device){ &sim_data.gpus[i], &sim_data.gpus[i].mig[k] };
		}
	}
	return n;
}

static bool starts_with(const volatile char *text, const char *prefix, size_t length)
{
	char copy[96];

	(void)sim_copy(copy, sizeof(copy), text);
	return length > 4 && strncasecmp(copy, prefix, length) == 0;
}

/*
 * Finds an item of CUDA_VISIBLE_DEVICES: an index, or a UUID, which may be abbreviated. Returns -1
 * if there is no such device, which ends the list as in the real library.
 */
static int find_item(const struct device *all, unsigned int n, unsigned int n_plain, const char *item, size_t length)
{
	char *end;
	long index = strtol(item, &end, 10);

	if (end == item + length && length > 0)
		return index >= 0 && (unsigned long)index < (n_plain > 0 ? n_plain : n) ? (int)index : -1;
	for (unsigned int i = 0; i < n; i++) {
		if (starts_with(all[i].mig ? all[i].mig->uuid : all[i].gpu->uuid, item, length))
			return (int)i;
	}
	return -1;
}

static void choose_devices(void)
{
	static struct device all[SIM_MAX_GPUS * (1 + SIM_MAX_MIG)];
	unsigned int n_plain, n = list_visible(all, &n_plain);
	const char *text = secure_getenv("CUDA_VISIBLE_DEVICES");

	state.n_devices = 0;
	if (!text) {
		/*
		 * MIG devices are never mixed with whole GPUs, and only one of them is used at a
		 * time.
		 */
		unsigned int n_default = n_plain > 0 ? n_plain : (n > 0 ? 1 : 0);

		memcpy(state.devices, all, n_default * sizeof(all[0]));
		state.n_devices = n_default;
		return;
	}
	while (*text != '\0' && state.n_devices < SIM_MAX_GPUS) {
		size_t length = strcspn(text, ",");
		int place = find_item(all, n, n_plain, text, length);

		if (place < 0)
			return;
		state.devices[state.n_devices++] = all[place];
		text += length + (text[length] == ',');
	}
}

ENTRY(cuInit, unsigned int flags)
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_driver_access() != SIM_ACCESS_YES)
		return CUDA_ERROR_NO_DEVICE;
	if (!sim_versions_agree())
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	/*
	 * Compute also needs the unified-memory node; without it the real library fails to start.
	 */
	if (!sim_data.wsl && !sim_data.no_nodes && sim_access("/dev/nvidia-uvm", 2 /* O_RDWR */) != SIM_ACCESS_YES)
		return CUDA_ERROR_UNKNOWN;
	choose_devices();
	state.ready = state.n_devices > 0;
	state.mps = state.ready && sim_mps_join();
	return state.ready ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

static CUresult check_cuda_device(CUdevice device, const void *out)
{
	if (!state.ready)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return device >= 0 && (unsigned int)device < state.n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

ENTRY(cuDriverGetVersion, int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = (int)sim_data.cuda;
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetCount, int *count)
{
	if (!state.ready || !count)
		return state.ready ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
	*count = (int)state.n_devices;
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGet, CUdevice *device, int ordinal)
{
	CUresult rc = check_cuda_device(ordinal, device);

	if (rc == CUDA_SUCCESS)
		*device = ordinal;
	return rc;
}

ENTRY(cuDeviceGetName, char *name, int length, CUdevice device)
{
	CUresult rc = check_cuda_device(device, name);
	char gpu[96], profile[32] = "", text[160];

	if (rc != CUDA_SUCCESS || length <= 0)
		return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
	(void)sim_copy(gpu, sizeof(gpu), state.devices[device].gpu->name);
	if (state.devices[device].mig)
		(void)sim_copy(profile, sizeof(profile), state.devices[device].mig->profile);
	(void)snprintf(text, sizeof(text), "%s%s%s", gpu, profile[0] != '\0' ? " MIG " : "", profile);
	(void)sim_copy(name, (uint32_t)length, text);
	return CUDA_SUCCESS;
}

/* Parses "GPU-6e7b...": 32 hexadecimal digits after the prefix, separated by dashes. */
static void parse_uuid(const volatile char *text, CUuuid *uuid)
{
	unsigned int digits = 0;

	memset(uuid, 0, sizeof(*uuid));
	for (const volatile char *c = text + 4; *c != '\0' && digits < 32; c++) {
		const char *hex = "0123456789abcdef", *at = strchr(hex, *c);

		if (!at)
			continue;
		uuid->bytes[digits / 2] = (char)((unsigned char)uuid->bytes[digits / 2] << 4 | (at - hex));
		digits++;
	}
}

ENTRY(cuDeviceGetUuid, CUuuid *uuid, CUdevice device)
{
	CUresult rc = check_cuda_device(device, uuid);

	if (rc == CUDA_SUCCESS)
		parse_uuid(state.devices[device].gpu->uuid, uuid);
	return rc;
}

ENTRY(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice device)
{
	CUresult rc = check_cuda_device(device, uuid);

	if (rc == CUDA_SUCCESS)
		parse_uuid(state.devices[device].mig ? state.devices[device].mig->uuid
						     : state.devices[device].gpu->uuid,
			   uuid);
	return rc;
}

static uint64_t memory_of(CUdevice device)
{
	return state.devices[device].mig ? state.devices[device].mig->memory : state.devices[device].gpu->memory;
}

ENTRY(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device)
{
	CUresult rc = check_cuda_device(device, bytes);

	if (rc == CUDA_SUCCESS)
		*bytes = memory_of(device);
	return rc;
}
ALIAS(cuDeviceTotalMem, cuDeviceTotalMem_v2, size_t *bytes, CUdevice device);

ENTRY(cuDeviceComputeCapability, int *major, int *minor, CUdevice device)
{
	CUresult rc = check_cuda_device(device, major);

	if (rc != CUDA_SUCCESS || !minor)
		return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
	*major = (int)state.devices[device].gpu->cc_major;
	*minor = (int)state.devices[device].gpu->cc_minor;
	return CUDA_SUCCESS;
}

static int attribute_of(const struct device *device, int attribute)
{
	switch (attribute) {
	case 1: /* threads per block */
	case 2: /* block x */
	case 3: /* block y */
		return 1024;
	case 4: /* block z */
		return 64;
	case 10: /* warp size */
		return 32;
	case 16:
		return (int)(device->mig ? device->mig->multiprocessors : device->gpu->multiprocessors);
	case 33:
		return (int)device->gpu->bus;
	case 34:
		return (int)device->gpu->device;
	case 41: /* unified addressing */
		return 1;
	case 50:
		return (int)device->gpu->domain;
	case 75:
		return (int)device->gpu->cc_major;
	case 76:
		return (int)device->gpu->cc_minor;
	case 133: /* contexts are shared through MPS */
		return state.mps;
	default:
		return 0;
	}
}

ENTRY(cuDeviceGetAttribute, int *value, int attribute, CUdevice device)
{
	CUresult rc = check_cuda_device(device, value);

	if (rc == CUDA_SUCCESS)
		*value = attribute_of(&state.devices[device], attribute);
	return rc;
}

ENTRY(cuDeviceGetPCIBusId, char *text, int length, CUdevice device)
{
	CUresult rc = check_cuda_device(device, text);
	const volatile struct sim_data_gpu *gpu;

	if (rc != CUDA_SUCCESS || length < 13)
		return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
	gpu = state.devices[device].gpu;
	(void)snprintf(text, (size_t)length, "%04X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->device);
	return CUDA_SUCCESS;
}

/* --- contexts and memory --- */

ENTRY(cuCtxCreate_v2, CUcontext *context, unsigned int flags, CUdevice device)
{
	CUresult rc = check_cuda_device(device, context);

	(void)flags;
	/*
	 * A process that bypasses MPS finds its server there, the one process that may use the GPU.
	 */
	if (rc == CUDA_SUCCESS && !state.mps &&
	    sim_gpu_compute_mode((uint32_t)(state.devices[device].gpu - sim_data.gpus)) != 0)
		rc = CUDA_ERROR_DEVICE_UNAVAILABLE;
	if (rc != CUDA_SUCCESS)
		return rc;
	state.contexts[device].device = device;
	current = *context = &state.contexts[device];
	return CUDA_SUCCESS;
}
ALIAS(cuCtxCreate, cuCtxCreate_v2, CUcontext *context, unsigned int flags, CUdevice device);

ENTRY(cuCtxDestroy_v2, CUcontext context)
{
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (current == context)
		current = NULL;
	return CUDA_SUCCESS;
}
ALIAS(cuCtxDestroy, cuCtxDestroy_v2, CUcontext context);

ENTRY(cuDevicePrimaryCtxRetain, CUcontext *context, CUdevice device)
{
	CUresult rc = check_cuda_device(device, context);

	if (rc != CUDA_SUCCESS)
		return rc;
	state.contexts[device].device = device;
	*context = &state.contexts[device];
	return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxRelease_v2, CUdevice device)
{
	return check_cuda_device(device, &state);
}
ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, CUdevice device);

ENTRY(cuCtxSetCurrent, CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

ENTRY(cuCtxGetCurrent, CUcontext *context)
{
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = current;
	return CUDA_SUCCESS;
}

ENTRY(cuCtxGetDevice, CUdevice *device)
{
	if (!device || !current)
		return device ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	*device = current->device;
	return CUDA_SUCCESS;
}

ENTRY(cuCtxSynchronize, void)
{
	return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* Device pointers are addresses of this process. */
static void *host_address(CUdeviceptr pointer)
{
	void *address;

	_Static_assert(sizeof(address) == sizeof(pointer), "device pointers have 64 bits");
	memcpy(&address, &pointer, sizeof(address));
	return address;
}

/*
 * Precedes each allocation with its size and device, so that freeing it credits the right device.
 */
struct allocation {
	uint64_t bytes;
	CUdevice device;
	int magic;
};
#define ALLOCATION_MAGIC 0x67724146

/* What a client of MPS may use of the device: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT "0=8192M", of its first. */
static uint64_t limit_of(CUdevice device)
{
	const char *text = state.mps ? secure_getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") : NULL;
	char *end = NULL;
	uint64_t limit = text && strncmp(text, "0=", 2) == 0 && device == 0 ? strtoull(text + 2, &end, 10) : 0;

	if (end && (*end == 'M' || *end == 'G'))
		limit <<= *end == 'M' ? 20 : 30;
	return limit > 0 && limit < memory_of(device) ? limit : memory_of(device);
}

ENTRY(cuMemAlloc_v2, CUdeviceptr *pointer, size_t bytes)
{
	struct allocation *allocation;

	if (!current || !pointer || bytes == 0)
		return current ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
	if (bytes > limit_of(current->device) - state.used[current->device])
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation = malloc(sizeof(*allocation) + bytes);
	if (!allocation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*allocation = (struct allocation){ bytes, current->device, ALLOCATION_MAGIC };
	(void)__atomic_add_fetch(&state.used[current->device], bytes, __ATOMIC_RELAXED);
	*pointer = (CUdeviceptr)(uintptr_t)(allocation + 1);
	return CUDA_SUCCESS;
}
ALIAS(cuMemAlloc, cuMemAlloc_v2, CUdeviceptr *pointer, size_t bytes);

ENTRY(cuMemFree_v2, CUdeviceptr pointer)
{
	struct allocation *allocation = host_address(pointer);

	if (pointer == 0)
		return CUDA_SUCCESS;
	allocation--;
	if (allocation->magic != ALLOCATION_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	allocation->magic = 0;
	(void)__atomic_sub_fetch(&state.used[allocation->device], allocation->bytes, __ATOMIC_RELAXED);
	free(allocation);
	return CUDA_SUCCESS;
}
ALIAS(cuMemFree, cuMemFree_v2, CUdeviceptr pointer);

ENTRY(cuMemGetInfo_v2, size_t *available, size_t *total)
{
	if (!current || !available || !total)
		return current ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
	*total = memory_of(current->device);
	*available = *total - state.used[current->device];
	return CUDA_SUCCESS;
}

static CUresult copy(void *to, const void *from, size_t bytes)
{
	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!to || !from)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, from, bytes);
	return CUDA_SUCCESS;
}

ENTRY(cuMemcpyHtoD_v2, CUdeviceptr to, const void *from, size_t bytes)
{
	return copy(host_address(to), from, bytes);
}
ALIAS(cuMemcpyHtoD, cuMemcpyHtoD_v2, CUdeviceptr to, const void *from, size_t bytes);

ENTRY(cuMemcpyDtoH_v2, void *to, CUdeviceptr from, size_t bytes)
{
	return copy(to, host_address(from), bytes);
}
ALIAS(cuMemcpyDtoH, cuMemcpyDtoH_v2, void *to, CUdeviceptr from, size_t bytes);

ENTRY(cuMemcpyDtoD_v2, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy(host_address(to), host_address(from), bytes);
}

ENTRY(cuMemsetD8_v2, CUdeviceptr to, unsigned char value, size_t bytes)
{
	if (!current || to == 0)
		return current ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
	memset(host_address(to), value, bytes);
	return CUDA_SUCCESS;
}

/* Nothing could execute code for a GPU. */
ENTRY(cuModuleLoadData, void **module, const void *image)
{
	(void)module;
	(void)image;
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* --- texts and addresses --- */

static const struct {
	int value;
	const char *name, *text;
} results[] = {
#define X(value, name, text) { value, "CUDA_" #name, text },
	CUDA_RESULT_LIST(X)
#undef X
};

ENTRY(cuGetErrorString, CUresult error, const char **text)
{
	for (unsigned int i = 0; text && i < sizeof(results) / sizeof(results[0]); i++) {
		if (results[i].value == (int)error) {
			*text = results[i].text;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGetErrorName, CUresult error, const char **name)
{
	for (unsigned int i = 0; name && i < sizeof(results) / sizeof(results[0]); i++) {
		if (results[i].value == (int)error) {
			*name = results[i].name;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* clang-format off */
#define FUNCTION_LIST(X)                                                                                      \
	X(cuInit) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName)                 \
	X(cuDeviceGetUuid) X(cuDeviceGetUuid_v2) X(cuDeviceTotalMem_v2) X(cuDeviceComputeCapability)          \
	X(cuDeviceGetAttribute) X(cuDeviceGetPCIBusId) X(cuCtxCreate_v2) X(cuCtxDestroy_v2)                   \
	X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) X(cuCtxSetCurrent) X(cuCtxGetCurrent)     \
	X(cuCtxGetDevice) X(cuCtxSynchronize) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemGetInfo_v2)             \
	X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoD_v2) X(cuMemsetD8_v2) X(cuModuleLoadData)         \
	X(cuGetErrorString) X(cuGetErrorName)
/* clang-format on */

static const struct {
	const char *name;
	void (*function)(void);
} functions[] = {
#define X(name) { #name, (void (*)(void))name },
	FUNCTION_LIST(X)
#undef X
};

/* Callers request functions by their plain names ("cuMemAlloc") and get the newest versions. */
static bool is_called(const char *function, const char *asked)
{
	size_t length = strlen(asked);

	return strncmp(function, asked, length) == 0 &&
	       (function[length] == '\0' || strcmp(function + length, "_v2") == 0);
}

ENTRY(cuGetProcAddress, const char *symbol, void **function, int version, uint64_t flags)
{
	(void)version;
	(void)flags;
	if (!symbol || !function)
		return CUDA_ERROR_INVALID_VALUE;
	*function = NULL;
	for (unsigned int i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (is_called(functions[i].name, symbol))
			memcpy(function, &functions[i].function, sizeof(*function));
	}
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

ENTRY(cuGetProcAddress_v2, const char *symbol, void **function, int version, uint64_t flags, int *status)
{
	CUresult rc = cuGetProcAddress(symbol, function, version, flags);

	if (status)
		*status = rc == CUDA_SUCCESS ? 0 : 1; /* 1: no such symbol */
	return rc == CUDA_ERROR_NOT_FOUND && status ? CUDA_SUCCESS : rc;
}
