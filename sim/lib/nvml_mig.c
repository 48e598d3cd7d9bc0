/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_mig: MIG in the simulated libnvidia-ml.so.1: its mode, devices, GPU instances, compute
 * instances and profiles. Nothing can be created or removed.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel_log.h"
#include "nvml_parts.h"

#define ONE_SLICE 0u /* the profile of the smallest GPU instances */

/* --- MIG devices --- */

static bool in_mig_mode(const struct nvml_handle *device)
{
	return sim_gpu_mig((uint32_t)(device->gpu - sim_data.gpus), NULL);
}

ENTRY(nvmlDeviceGetMigMode, nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	nvmlReturn_t rc = nvml_check_gpu(device, current);
	bool is_pending;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!device->gpu->mig_capable)
		return NVML_NOT_SUPPORTED;
	*current = sim_gpu_mig((uint32_t)(device->gpu - sim_data.gpus), &is_pending);
	if (pending)
		*pending = is_pending;
	return NVML_SUCCESS;
}

/*
 * Before Hopper the new mode waits for a reset (IN_USE), as on a host where another program has the
 * GPU open. A GPU that has instances stays in MIG mode.
 */
ENTRY(nvmlDeviceSetMigMode, nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
	nvmlReturn_t rc = nvml_check_gpu(device, activation);
	uint32_t index;
	bool pending;

	if (rc != NVML_SUCCESS || mode > 1)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	if (!device->gpu->mig_capable)
		return NVML_NOT_SUPPORTED;
	index = (uint32_t)(device->gpu - sim_data.gpus);
	if (mode == 0 && device->gpu->n_mig > 0)
		return NVML_IN_USE;
	(void)sim_gpu_mig(index, &pending);
	if (pending != (mode == 1) && !sim_log_mig(index, mode == 1))
		return NVML_NO_PERMISSION;
	*activation = sim_gpu_mig(index, NULL) == (mode == 1) ? NVML_SUCCESS : NVML_IN_USE;
	return NVML_SUCCESS;
}

/* Source: the library counts those that fit now, so that a GPU without MIG mode answers 0. */
ENTRY(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice_t device, unsigned int *count)
{
	nvmlReturn_t rc = nvml_check_gpu(device, count);

	if (rc == NVML_SUCCESS)
		*count = in_mig_mode(device) ? device->gpu->mig_profiles[ONE_SLICE].instances : 0;
	return rc;
}

ENTRY(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
	nvmlReturn_t rc = nvml_check_gpu(device, mig);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!in_mig_mode(device))
		return NVML_NOT_SUPPORTED;
	if (index >= device->n_mig)
		return NVML_NOT_FOUND;
	*mig = device->migs[index];
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t mig, nvmlDevice_t *device)
{
	nvmlReturn_t rc = nvml_check_device(mig, device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!mig->mig)
		return NVML_INVALID_ARGUMENT;
	*device = mig->parent;
	return NVML_SUCCESS;
}

GIVE_NUMBER(nvmlDeviceIsMigDeviceHandle, nvml_check_device, unsigned int, device->mig != NULL)
GIVE_NUMBER(nvmlDeviceGetGpuInstanceId, nvml_check_mig, unsigned int, device->mig->gi)
GIVE_NUMBER(nvmlDeviceGetComputeInstanceId, nvml_check_mig, unsigned int, device->mig->ci)

ENTRY(nvmlDeviceGetAttributes_v2, nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
	nvmlReturn_t rc = nvml_check_mig(device, attributes);

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

/* --- profiles of GPU instances --- */

static nvmlReturn_t check_profile(const struct nvml_handle *device, unsigned int profile, const void *out)
{
	nvmlReturn_t rc = nvml_check_gpu(device, out);

	if (rc != NVML_SUCCESS)
		return rc;
	if (profile >= SIM_MAX_MIG_PROFILES)
		return NVML_INVALID_ARGUMENT;
	return device->gpu->mig_profiles[profile].name[0] != '\0' ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

/* Finds a profile by the id that GetGpuInstanceProfileInfo() gives it. */
static const volatile struct sim_data_mig_profile *find_profile(const struct nvml_handle *device, unsigned int id)
{
	for (unsigned int i = 0; i < SIM_MAX_MIG_PROFILES; i++) {
		const volatile struct sim_data_mig_profile *profile = &device->gpu->mig_profiles[i];

		if (profile->name[0] != '\0' && profile->id == id)
			return profile;
	}
	return NULL;
}

static void profile_info(const volatile struct sim_data_mig_profile *profile, nvmlGpuInstanceProfileInfo_t *info)
{
	*info = (nvmlGpuInstanceProfileInfo_t){ .id = profile->id,
						.sliceCount = profile->slices,
						.instanceCount = profile->instances,
						.multiprocessorCount = profile->multiprocessors,
						.copyEngineCount = profile->memory_slices,
						.decoderCount = profile->memory_slices / 2,
						.memorySizeMB = profile->memory_mib };
}

ENTRY(nvmlDeviceGetGpuInstanceProfileInfo, nvmlDevice_t device, unsigned int profile,
      nvmlGpuInstanceProfileInfo_t *info)
{
	nvmlReturn_t rc = check_profile(device, profile, info);

	if (rc == NVML_SUCCESS)
		profile_info(&device->gpu->mig_profiles[profile], info);
	return rc;
}

ENTRY(nvmlDeviceGetGpuInstanceProfileInfoV, nvmlDevice_t device, unsigned int profile,
      nvmlGpuInstanceProfileInfo_v2_t *info)
{
	nvmlGpuInstanceProfileInfo_v3_t *third = (void *)info;
	nvmlReturn_t rc = check_profile(device, profile, info);
	nvmlGpuInstanceProfileInfo_t all;
	char name[32], text[96];

	if (rc != NVML_SUCCESS)
		return rc;
	profile_info(&device->gpu->mig_profiles[profile], &all);
	(void)sim_copy(name, sizeof(name), device->gpu->mig_profiles[profile].name);
	(void)snprintf(text, sizeof(text), "MIG %s", name);
	if (info->version == NVML_VERSION(*info, 2)) {
		memcpy(&info->id, &all, offsetof(nvmlGpuInstanceProfileInfo_t, memorySizeMB));
		info->memorySizeMB = all.memorySizeMB;
		memcpy(info->name, text, sizeof(text));
		return NVML_SUCCESS;
	}
	if (info->version != NVML_VERSION(*third, 3))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	*third = (nvmlGpuInstanceProfileInfo_v3_t){ .version = third->version,
						    .id = all.id,
						    .sliceCount = all.sliceCount,
						    .instanceCount = all.instanceCount,
						    .multiprocessorCount = all.multiprocessorCount,
						    .copyEngineCount = all.copyEngineCount,
						    .decoderCount = all.decoderCount,
						    .memorySizeMB = all.memorySizeMB };
	memcpy(third->name, text, sizeof(text));
	return NVML_SUCCESS;
}

/* How many more instances of a profile fit next to the existing ones. */
ENTRY(nvmlDeviceGetGpuInstanceRemainingCapacity, nvmlDevice_t device, unsigned int id, unsigned int *count)
{
	nvmlReturn_t rc = nvml_check_gpu(device, count);
	const volatile struct sim_data_mig_profile *profile;
	unsigned int slices = 0, memory = 0, all_slices = 0, all_memory = 0, last = 99;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!in_mig_mode(device))
		return NVML_NOT_SUPPORTED;
	profile = find_profile(device, id);
	if (!profile)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < device->gpu->n_mig; i++) {
		const volatile struct sim_data_mig *mig = &device->gpu->mig[i];

		if (mig->gi == last)
			continue;
		last = mig->gi;
		slices += mig->gi_slices;
		memory += device->gpu->mig_profiles[mig->gi_profile].memory_slices;
	}
	/* The largest profile is the whole GPU. */
	for (unsigned int i = 0; i < SIM_MAX_MIG_PROFILES; i++) {
		const volatile struct sim_data_mig_profile *whole = &device->gpu->mig_profiles[i];

		all_slices = whole->slices > all_slices ? whole->slices : all_slices;
		all_memory = whole->memory_slices > all_memory ? whole->memory_slices : all_memory;
	}
	*count = 0;
	while (*count < profile->instances && slices + (*count + 1) * profile->slices <= all_slices &&
	       memory + (*count + 1) * profile->memory_slices <= all_memory)
		(*count)++;
	return NVML_SUCCESS;
}

/* The first call of a caller has no room for placements and learns how many there are. */
ENTRY(nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvmlDevice_t device, unsigned int id, nvmlPlacement_t *placements,
      unsigned int *count)
{
	nvmlReturn_t rc = nvml_check_gpu(device, count);
	const volatile struct sim_data_mig_profile *profile;

	if (rc != NVML_SUCCESS)
		return rc;
	profile = find_profile(device, id);
	if (!profile)
		return device->gpu->mig_capable ? NVML_INVALID_ARGUMENT : NVML_NOT_SUPPORTED;
	for (unsigned int i = 0; placements && i < profile->instances; i++)
		placements[i] = (nvmlPlacement_t){ i * profile->memory_slices, profile->memory_slices };
	*count = profile->instances;
	return NVML_SUCCESS;
}
ALIAS(nvmlDeviceGetGpuInstancePossiblePlacements, nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvmlDevice_t device,
      unsigned int id, nvmlPlacement_t *placements, unsigned int *count);

/* --- GPU instances --- */

static const volatile struct sim_data_mig_profile *profile_of(const struct nvml_gpu_instance *instance)
{
	return &instance->gpu->gpu->mig_profiles[instance->mig->gi_profile];
}

static nvmlReturn_t check_instance(const struct nvml_gpu_instance *instance, const void *out)
{
	if (nvml_state.references == 0)
		return NVML_UNINITIALIZED;
	for (unsigned int i = 0; instance && i < nvml_state.n_gpus; i++) {
		const struct nvml_handle *gpu = &nvml_state.gpus[i];

		if (instance >= gpu->instances && instance < gpu->instances + gpu->n_instances)
			return nvml_check_gpu(gpu, out);
	}
	return NVML_INVALID_ARGUMENT;
}

ENTRY(nvmlDeviceGetGpuInstances, nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instances,
      unsigned int *count)
{
	nvmlReturn_t rc = nvml_check_gpu(device, count);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!in_mig_mode(device))
		return NVML_NOT_SUPPORTED;
	if (!instances || !find_profile(device, id))
		return NVML_INVALID_ARGUMENT;
	*count = 0;
	for (unsigned int i = 0; i < device->n_instances; i++) {
		if (profile_of(&device->instances[i])->id == id)
			instances[(*count)++] = &device->instances[i];
	}
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetGpuInstanceById, nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance)
{
	nvmlReturn_t rc = nvml_check_gpu(device, instance);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!in_mig_mode(device))
		return NVML_NOT_SUPPORTED;
	for (unsigned int i = 0; i < device->n_instances; i++) {
		if (device->instances[i].mig->gi == id) {
			*instance = &device->instances[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_NOT_FOUND;
}

ENTRY(nvmlGpuInstanceGetInfo, nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
	nvmlReturn_t rc = check_instance(instance, info);

	if (rc == NVML_SUCCESS)
		*info = (nvmlGpuInstanceInfo_t){ .device = instance->gpu,
						 .id = instance->mig->gi,
						 .profileId = profile_of(instance)->id,
						 .placement = { instance->mig->gi_start,
								profile_of(instance)->memory_slices } };
	return rc;
}

/* --- compute instances --- */

/* NVML's numbers of profiles, which are also their ids: the slices of each. */
static const unsigned int compute_slices[] = { 1, 2, 3, 4, 7, 8, 6, 1 };

static unsigned int compute_profile(unsigned int slices)
{
	unsigned int i = 0;

	while (compute_slices[i] != slices && i + 1 < sizeof(compute_slices) / sizeof(compute_slices[0]))
		i++;
	return i;
}

static nvmlReturn_t compute_profile_info(const struct nvml_gpu_instance *instance, unsigned int profile,
					 unsigned int engines, nvmlComputeInstanceProfileInfo_t *info)
{
	nvmlReturn_t rc = check_instance(instance, info);
	const volatile struct sim_data_mig_profile *whole;
	unsigned int slices;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!info || profile >= sizeof(compute_slices) / sizeof(compute_slices[0]) || engines != 0)
		return NVML_INVALID_ARGUMENT;
	whole = profile_of(instance);
	slices = compute_slices[profile];
	if (slices > whole->slices || profile == 7)
		return NVML_NOT_SUPPORTED;
	*info = (nvmlComputeInstanceProfileInfo_t){
		.id = profile,
		.sliceCount = slices,
		.instanceCount = whole->slices / slices,
		.multiprocessorCount = slices == whole->slices ? whole->multiprocessors
							       : slices * whole->slice_multiprocessors,
		.sharedCopyEngineCount = whole->memory_slices,
		.sharedDecoderCount = whole->memory_slices / 2,
	};
	return NVML_SUCCESS;
}

ENTRY(nvmlGpuInstanceGetComputeInstanceProfileInfo, nvmlGpuInstance_t instance, unsigned int profile,
      unsigned int engines, nvmlComputeInstanceProfileInfo_t *info)
{
	return compute_profile_info(instance, profile, engines, info);
}

ENTRY(nvmlGpuInstanceGetComputeInstanceProfileInfoV, nvmlGpuInstance_t instance, unsigned int profile,
      unsigned int engines, nvmlComputeInstanceProfileInfo_v2_t *info)
{
	nvmlComputeInstanceProfileInfo_v3_t *third = (void *)info;
	nvmlReturn_t rc = compute_profile_info(instance, profile, engines, info ? &info->info : NULL);
	char name[32];

	if (rc != NVML_SUCCESS)
		return rc;
	if (info->version != NVML_VERSION(*info, 2) && info->version != NVML_VERSION(*third, 3))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	(void)sim_copy(name, sizeof(name), profile_of(instance)->name);
	if (info->info.sliceCount == profile_of(instance)->slices)
		(void)snprintf(info->name, sizeof(info->name), "MIG %s", name);
	else
		(void)snprintf(info->name, sizeof(info->name), "MIG %uc.%s", info->info.sliceCount, name);
	if (info->version == NVML_VERSION(*third, 3))
		third->capabilities = 0;
	return NVML_SUCCESS;
}

static bool is_in(const struct nvml_handle *mig, const struct nvml_gpu_instance *instance)
{
	return mig->mig->gi == instance->mig->gi;
}

ENTRY(nvmlGpuInstanceGetComputeInstances, nvmlGpuInstance_t instance, unsigned int id, nvmlComputeInstance_t *instances,
      unsigned int *count)
{
	nvmlReturn_t rc = check_instance(instance, count);

	if (rc != NVML_SUCCESS || !instances)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*count = 0;
	for (unsigned int i = 0; i < instance->gpu->n_mig; i++) {
		struct nvml_handle *mig = instance->gpu->migs[i];

		if (is_in(mig, instance) && compute_profile(mig->mig->ci_slices) == id)
			instances[(*count)++] = mig;
	}
	return NVML_SUCCESS;
}

ENTRY(nvmlGpuInstanceGetComputeInstanceById, nvmlGpuInstance_t instance, unsigned int id,
      nvmlComputeInstance_t *compute)
{
	nvmlReturn_t rc = check_instance(instance, compute);

	if (rc != NVML_SUCCESS)
		return rc;
	for (unsigned int i = 0; i < instance->gpu->n_mig; i++) {
		if (is_in(instance->gpu->migs[i], instance) && instance->gpu->migs[i]->mig->ci == id) {
			*compute = instance->gpu->migs[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_NOT_FOUND;
}

ENTRY(nvmlGpuInstanceGetComputeInstanceRemainingCapacity, nvmlGpuInstance_t instance, unsigned int id,
      unsigned int *count)
{
	nvmlComputeInstanceProfileInfo_t info;
	nvmlReturn_t rc = count ? compute_profile_info(instance, id, 0, &info) : NVML_INVALID_ARGUMENT;
	unsigned int used = 0;

	if (rc != NVML_SUCCESS)
		return rc;
	for (unsigned int i = 0; i < instance->gpu->n_mig; i++)
		used += is_in(instance->gpu->migs[i], instance) ? instance->gpu->migs[i]->mig->ci_slices : 0;
	*count = (profile_of(instance)->slices - used) / info.sliceCount;
	return NVML_SUCCESS;
}

ENTRY(nvmlComputeInstanceGetInfo_v2, nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info)
{
	nvmlReturn_t rc = nvml_check_mig(compute, info);

	if (rc != NVML_SUCCESS)
		return rc;
	*info = (nvmlComputeInstanceInfo_t){ .device = compute->parent,
					     .id = compute->mig->ci,
					     .profileId = compute_profile(compute->mig->ci_slices),
					     .placement = { compute->mig->ci_start, compute->mig->ci_slices } };
	return nvmlDeviceGetGpuInstanceById(compute->parent, compute->mig->gi, &info->gpuInstance);
}
ALIAS(nvmlComputeInstanceGetInfo, nvmlComputeInstanceGetInfo_v2, nvmlComputeInstance_t compute,
      nvmlComputeInstanceInfo_t *info);
