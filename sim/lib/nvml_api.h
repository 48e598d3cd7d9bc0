/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_api: the part of NVML's binary interface that the simulated library offers and the simulated nvidia-smi uses: numbers and layouts
 * that callers compiled against the real one rely on. Layouts are for LP64.
 */
#ifndef GRAFT_SIM_NVML_API_H
#define GRAFT_SIM_NVML_API_H

/* value, name, what nvmlErrorString() says */
#define NVML_RETURN_LIST(X)                                                                         \
	X(0, SUCCESS, "Success")                                                                    \
	X(1, UNINITIALIZED, "Uninitialized")                                                        \
	X(2, INVALID_ARGUMENT, "Invalid Argument")                                                  \
	X(3, NOT_SUPPORTED, "Not Supported")                                                        \
	X(4, NO_PERMISSION, "Insufficient Permissions")                                             \
	X(5, ALREADY_INITIALIZED, "Already Initialized")                                            \
	X(6, NOT_FOUND, "Not Found")                                                                \
	X(7, INSUFFICIENT_SIZE, "Insufficient Size")                                                \
	X(8, INSUFFICIENT_POWER, "Insufficient External Power")                                     \
	X(9, DRIVER_NOT_LOADED, "Driver Not Loaded")                                                \
	X(10, TIMEOUT, "Timeout")                                                                   \
	X(11, IRQ_ISSUE, "Interrupt Request Issue")                                                 \
	X(12, LIBRARY_NOT_FOUND, "NVML Shared Library Not Found")                                   \
	X(13, FUNCTION_NOT_FOUND, "Function Not Found")                                             \
	X(14, CORRUPTED_INFOROM, "Corrupted infoROM")                                               \
	X(15, GPU_IS_LOST, "GPU is lost")                                                           \
	X(16, RESET_REQUIRED, "GPU requires restart")                                               \
	X(17, OPERATING_SYSTEM, "The operating system has blocked the request.")                    \
	X(18, LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch")                           \
	X(19, IN_USE, "In use by another client")                                                   \
	X(20, MEMORY, "Insufficient Memory")                                                        \
	X(21, NO_DATA, "No data")                                                                   \
	X(22, VGPU_ECC_NOT_SUPPORTED,                                                               \
	  "The requested vgpu operation is not available on target device, becasue ECC is enabled") \
	X(23, INSUFFICIENT_RESOURCES, "Insufficient Resources")                                     \
	X(25, ARGUMENT_VERSION_MISMATCH, "Argument version mismatch")                               \
	X(999, UNKNOWN, "Unknown Error")

typedef enum {
#define X(value, name, text) NVML_##name = value,
	NVML_RETURN_LIST(X)
#undef X
} nvmlReturn_t;

typedef struct nvml_handle *nvmlDevice_t;
typedef struct nvml_event_set *nvmlEventSet_t;

typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device;
	unsigned int pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

/* As of nvmlDeviceGetPciInfo() and _v2. */
typedef struct {
	char busId[16];
	unsigned int domain, bus, device;
	unsigned int pciDeviceId, pciSubSystemId;
	unsigned int reserved[4];
} nvmlPciInfo_v2_t;

typedef struct {
	unsigned int version; /* NVML_ADDRESSING_VERSION */
	unsigned int value;
} nvmlDeviceAddressingMode_t;
#define NVML_ADDRESSING_VERSION 0x1000008u
#define NVML_ADDRESSING_ATS     2u

typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
	unsigned int version;
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
	unsigned long long bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
	unsigned int gpu, memory;
} nvmlUtilization_t;

typedef struct {
	unsigned int multiprocessorCount;
	unsigned int sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
	unsigned int gpuInstanceSliceCount, computeInstanceSliceCount;
	unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

#endif
