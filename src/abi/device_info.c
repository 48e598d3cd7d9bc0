/* SPDX-License-Identifier: Apache-2.0 */
/* device_info: the GPUs and their MIG devices (SPEC libnvidia-container 2.1, 7.1). */
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "abi/abi.h"
#include "base/strings.h"

#define NO_NVML   "no-nvml"
#define ARENA_MAX ((size_t)16 << 20)
#define FACTS     (GRAFT_NVML_UUID | GRAFT_NVML_MODEL | GRAFT_NVML_BRAND | GRAFT_NVML_ARCH | GRAFT_NVML_MIG)

/* The caller gets a pointer to the first member. */
struct devices {
	struct nvc_device_info info;
	struct graft_arena *arena;
};

static void fill_mig(struct graft_arena *arena, const struct graft_gpu *gpu, struct nvc_device *device)
{
	struct nvc_mig_device_info *info = &device->mig_devices;

	info->devices = graft_arena_list(arena, gpu->n_mig_devices, sizeof(*info->devices));
	for (size_t i = 0; info->devices && i < gpu->n_mig_devices; i++) {
		const struct graft_mig_device *mig = &gpu->mig_devices[i];

		info->devices[i] = (struct nvc_mig_device){
			.parent = device,
			.uuid = graft_arena_strdup(arena, mig->uuid.value),
			.gi = mig->gi,
			.ci = mig->ci,
			.gi_caps_path = graft_arena_strdup(arena, mig->gi_caps_path),
			.ci_caps_path = graft_arena_strdup(arena, mig->ci_caps_path),
		};
		info->ndevices = i + 1;
	}
}

static void fill_device(struct graft_arena *arena, const struct graft_gpu *gpu, struct nvc_device *device)
{
	*device = (struct nvc_device){
		.model = graft_arena_strdup(arena, gpu->model.value),
		.uuid = graft_arena_strdup(arena, gpu->uuid.value),
		.busid = graft_arena_strdup(arena, gpu->bus_id),
		.arch = graft_arena_strdup(arena, gpu->arch.value),
		.brand = graft_arena_strdup(arena, gpu->brand.value),
		.node = { graft_arena_strdup(arena, gpu->node.path), makedev(gpu->node.major, gpu->node.minor) },
		.mig_capable = gpu->mig_capable,
		.mig_caps_path = graft_arena_strdup(arena, gpu->mig_caps_path),
	};
	fill_mig(arena, gpu, device);
}

static void fill_device_info(struct devices *devices, const struct graft_inventory *inventory)
{
	struct nvc_device_info *info = &devices->info;

	info->gpus = graft_arena_list(devices->arena, inventory->n_gpus, sizeof(*info->gpus));
	for (size_t i = 0; info->gpus && i < inventory->n_gpus; i++) {
		if (!inventory->gpus[i].excluded)
			fill_device(devices->arena, &inventory->gpus[i], &info->gpus[info->ngpus++]);
	}
}

ABI_PUBLIC struct nvc_device_info *nvc_device_info_new(struct nvc_context *ctx, const char *opts)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_pipeline pipeline = { .inventory = NULL };
	struct devices *devices;
	int rc;

	if (abi_check(ctx) < 0)
		return NULL;
	pipeline.host = ctx->host;
	devices = calloc(1, sizeof(*devices));
	if (devices)
		devices->arena = graft_arena_new(ARENA_MAX);
	rc = devices && devices->arena ? 0 : graft_fail_memory(&err);
	if (rc == 0)
		rc = graft_pipeline_discover(&pipeline, GRAFT_NEED_GPUS | GRAFT_NEED_MIG, &err);
	if (rc == 0 && !graft_list_has_bytes(opts, ' ', NO_NVML, strlen(NO_NVML)))
		rc = graft_pipeline_complete(&pipeline, FACTS, &err);
	if (rc == 0) {
		fill_device_info(devices, pipeline.inventory);
		rc = graft_arena_failed(devices->arena) ? graft_fail_memory(&err) : 0;
	}
	graft_pipeline_done(&pipeline);
	if (rc == 0)
		return &devices->info;
	(void)abi_fail(ctx, &err);
	nvc_device_info_free(devices ? &devices->info : NULL);
	return NULL;
}

ABI_PUBLIC void nvc_device_info_free(struct nvc_device_info *info)
{
	struct devices *devices = (struct devices *)(void *)info;

	if (!devices)
		return;
	graft_arena_free(devices->arena);
	free(devices);
}
