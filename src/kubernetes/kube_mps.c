/* SPDX-License-Identifier: Apache-2.0 */
/* kube_mps: derives the daemons from an offer. Uses only its arguments. */
#include "kubernetes/kube_mps.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"

static const struct graft_field gpu_fields[] = {
	GRAFT_F_STRING(struct graft_kube_mps_gpu, uuid, true, "UUID of the GPU"),
	GRAFT_F_U32(struct graft_kube_mps_gpu, mib, false, "a program's part of its memory, in MiB; absent: no bound"),
};
static const struct graft_record gpu_record = { "gpu", sizeof(struct graft_kube_mps_gpu), gpu_fields,
						GRAFT_COUNT(gpu_fields) };
static const struct graft_field daemon_fields[] = {
	GRAFT_F_STRING(struct graft_kube_mps_daemon, resource, true, "resource whose devices it shares"),
	GRAFT_F_RECORDS(struct graft_kube_mps_daemon, gpus, &gpu_record, "GPUs, in the order in which it counts them"),
	GRAFT_F_U32(struct graft_kube_mps_daemon, percent, true, "a program's part of the processors of a GPU"),
};
const struct graft_record graft_kube_mps_daemon_record = { "daemon", sizeof(struct graft_kube_mps_daemon),
							   daemon_fields, GRAFT_COUNT(daemon_fields) };

struct planning {
	const struct graft_inventory *inventory;
	const struct graft_kept_facts *kept;
	struct graft_arena *arena;
};

static const struct graft_nvml_gpu *find_mps_gpu(const struct planning *planning, const char *bus_id)
{
	const struct graft_nvml_snapshot *nvml = &planning->kept->nvml;

	for (size_t i = 0; i < nvml->n_gpus; i++) {
		if (nvml->gpus[i].bus_id && strcmp(nvml->gpus[i].bus_id, bus_id) == 0)
			return &nvml->gpus[i];
	}
	return NULL;
}

static int check_mps_device(const struct planning *planning, const struct graft_kube_device *device,
			    const struct graft_nvml_gpu *gpu, struct graft_error *err)
{
	uint32_t max = gpu && gpu->has_arch && gpu->arch_major < 7 ? GRAFT_KUBE_MPS_PROGRAMS_OLD
								   : GRAFT_KUBE_MPS_PROGRAMS;

	if (!device->bus_id || device->gpu >= planning->inventory->n_gpus)
		return graft_fail(err, GRAFT_INVALID, 0, "MPS cannot share device '%s': it is not a PCI GPU",
				  device->base_id);
	if (device->mig || planning->inventory->gpus[device->gpu].mig_enabled)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "MPS is configured, but GPU %" PRIu32 " is in MIG mode: MPS shares whole GPUs",
				  planning->inventory->gpus[device->gpu].index);
	if (device->replicas > max)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "MPS serves at most %" PRIu32 " programs on GPU %s, but %" PRIu32
				  " replicas are configured",
				  max, device->index, device->replicas);
	return 0;
}

/* Replicas of one GPU are adjacent. */
static bool is_last_gpu(const struct graft_kube_mps_daemon *daemon, const struct graft_kube_device *device)
{
	return daemon->n_gpus > 0 && strcmp(daemon->gpus[daemon->n_gpus - 1].uuid, device->base_id) == 0;
}

static int plan_device(const struct planning *planning, const struct graft_kube_device *device,
		       struct graft_kube_mps_daemon *daemon, struct graft_error *err)
{
	const struct graft_nvml_gpu *gpu = device->bus_id ? find_mps_gpu(planning, device->bus_id) : NULL;
	struct graft_kube_mps_gpu *item = &daemon->gpus[daemon->n_gpus];

	if (check_mps_device(planning, device, gpu, err) < 0)
		return -1;
	*item = (struct graft_kube_mps_gpu){ .uuid = graft_arena_strdup(planning->arena, device->base_id),
					     .mib = gpu && gpu->has_memory ? gpu->memory_mib / device->replicas : 0 };
	if (!item->uuid)
		return graft_fail_memory(err);
	daemon->n_gpus++;
	/* One limit for all GPUs of a daemon: that of the GPU with the most replicas. */
	if (100 / device->replicas < daemon->percent)
		daemon->percent = 100 / device->replicas;
	return 0;
}

static int plan_resource(const struct planning *planning, const struct graft_kube_resource *resource,
			 struct graft_kube_mps_daemon *daemon, struct graft_error *err)
{
	*daemon = (struct graft_kube_mps_daemon){ .resource = graft_arena_strdup(planning->arena, resource->name),
						  .percent = 100 };
	daemon->gpus = graft_arena_list(planning->arena, resource->n_devices, sizeof(*daemon->gpus));
	if (graft_arena_failed(planning->arena))
		return graft_fail_memory(err);
	for (size_t i = 0; i < resource->n_devices; i++) {
		const struct graft_kube_device *device = &resource->devices[i];

		if (device->replicas > 1 && !is_last_gpu(daemon, device) &&
		    plan_device(planning, device, daemon, err) < 0)
			return -1;
	}
	return 0;
}

int graft_kube_mps_plan(const struct graft_kube_offer *offer, const struct graft_inventory *inventory,
			const struct graft_kept_facts *kept, struct graft_arena *arena, struct graft_kube_mps *ret_mps,
			struct graft_error *err)
{
	const struct planning planning = { .inventory = inventory, .kept = kept, .arena = arena };

	*ret_mps = (struct graft_kube_mps){ .daemons = graft_arena_list(arena, offer->n_resources,
									sizeof(*ret_mps->daemons)) };
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	for (size_t i = 0; i < offer->n_resources; i++) {
		const struct graft_kube_resource *resource = &offer->resources[i];
		struct graft_kube_mps_daemon *daemon = &ret_mps->daemons[ret_mps->n_daemons];

		if (resource->sharing != GRAFT_KUBE_MPS)
			continue;
		if (plan_resource(&planning, resource, daemon, err) < 0)
			return graft_wrap(err, "%s", resource->name);
		if (daemon->n_gpus > 0)
			ret_mps->n_daemons++;
	}
	return 0;
}
