/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_api: the part of NVML's binary interface that the simulated library provides and the
 * simulated nvidia-smi uses: numbers and layouts on which callers compiled against the real library
 * rely. The layouts are those of LP64.
 */
#ifndef GRAFT_SIM_NVML_API_H
#define GRAFT_SIM_NVML_API_H

/* value, name, text that nvmlErrorString() returns */
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
typedef struct nvml_gpu_instance *nvmlGpuInstance_t;
typedef struct nvml_handle *nvmlComputeInstance_t; /* the MIG device that it is */

/* The version that callers put into a structure that has one. */
#define NVML_VERSION(type, number) ((unsigned int)sizeof(type) | (unsigned int)(number) << 24)

typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device;
	unsigned int pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

/* Used by nvmlDeviceGetPciInfo() and nvmlDeviceGetPciInfo_v2(). */
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

typedef struct {
	unsigned int version;
	unsigned int domain, bus, device;
	unsigned int pciDeviceId, pciSubSystemId;
	unsigned int baseClass, subClass;
	char busId[32];
} nvmlPciInfoExt_t;

typedef struct {
	unsigned int version;
	char branch[80];
} nvmlDriverBranch_t;

/* --- MIG --- */

typedef struct {
	unsigned int start, size;
} nvmlPlacement_t;

typedef struct {
	unsigned int id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount;
	unsigned int copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
	unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;

typedef struct {
	unsigned int version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount;
	unsigned int copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
	unsigned long long memorySizeMB;
	char name[96];
} nvmlGpuInstanceProfileInfo_v2_t;

typedef struct {
	unsigned int version, id, sliceCount, instanceCount, multiprocessorCount;
	unsigned int copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
	unsigned long long memorySizeMB;
	char name[96];
	unsigned int capabilities; /* 1: peer-to-peer */
} nvmlGpuInstanceProfileInfo_v3_t;

typedef struct {
	nvmlDevice_t device;
	unsigned int id, profileId;
	nvmlPlacement_t placement;
} nvmlGpuInstanceInfo_t;

typedef struct {
	unsigned int id, sliceCount, instanceCount, multiprocessorCount;
	unsigned int sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;

typedef struct {
	unsigned int version;
	nvmlComputeInstanceProfileInfo_t info;
	char name[96];
} nvmlComputeInstanceProfileInfo_v2_t;

typedef struct {
	unsigned int version;
	nvmlComputeInstanceProfileInfo_t info;
	char name[96];
	unsigned int capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;

typedef struct {
	nvmlDevice_t device;
	nvmlGpuInstance_t gpuInstance;
	unsigned int id, profileId;
	nvmlPlacement_t placement;
} nvmlComputeInstanceInfo_t;

/* --- NVLink and its fabric --- */

typedef struct {
	unsigned char clusterUuid[16];
	unsigned int status; /* nvmlReturn_t */
	unsigned int cliqueId;
	unsigned char state;
} nvmlGpuFabricInfo_t;

typedef struct {
	unsigned int version;
	unsigned char clusterUuid[16];
	unsigned int status;
	unsigned int cliqueId;
	unsigned char state;
	unsigned int healthMask;
} nvmlGpuFabricInfo_v2_t;

typedef struct {
	unsigned int version;
	unsigned char clusterUuid[16];
	unsigned int status;
	unsigned int cliqueId;
	unsigned char state;
	unsigned int healthMask;
	unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;

typedef struct {
	unsigned int version;
	unsigned char ibGuid[16];
	unsigned char chassisSerialNumber[16]; /* version 1: rackGuid */
	unsigned char slotNumber, trayIndex, hostId, peerType, moduleId;
} nvmlPlatformInfo_t;

/* --- monitoring --- */

typedef struct {
	unsigned int fieldId, scopeId;
	long long timestamp, latencyUsec;
	unsigned int valueType; /* NVML_VALUE_* */
	nvmlReturn_t nvmlReturn;
	union {
		double dVal;
		unsigned int uiVal;
		unsigned long ulVal;
		unsigned long long ullVal;
		long long sllVal;
	} value;
} nvmlFieldValue_t;
enum { NVML_VALUE_UINT = 1, NVML_VALUE_ULLONG = 3 };

typedef struct {
	unsigned long long l1Cache, l2Cache, deviceMemory, registerFile;
} nvmlEccErrorCounts_t;

typedef struct {
	unsigned int max, high, partial, low, none;
} nvmlRowRemapperHistogramValues_t;

typedef struct {
	unsigned long long referenceTime, violationTime;
} nvmlViolationTime_t;

typedef struct {
	unsigned int sessionsCount, averageFPS, averageLatency;
} nvmlFBCStats_t;

typedef struct {
	nvmlDevice_t device;
	unsigned long long eventType; /* NVML_EVENT_* */
	unsigned long long eventData; /* the Xid */
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
#define NVML_EVENT_SINGLE_BIT_ECC 0x01ull
#define NVML_EVENT_DOUBLE_BIT_ECC 0x02ull
#define NVML_EVENT_PSTATE         0x04ull
#define NVML_EVENT_XID            0x08ull
#define NVML_EVENT_CLOCK          0x10ull

#endif
