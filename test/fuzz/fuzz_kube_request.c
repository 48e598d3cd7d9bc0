/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubelet's Allocate, after an odd first byte GetPreferredAllocation: given devices exist, and
 * chosen ones were available and include all required ones.
 */
#include <device_plugin.pb-c.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "fuzz.h"
#include "kubernetes/kube_allocate.h"
#include "kubernetes/kube_preferred.h"
#include "rpc/message.h"

#define GPU(name, number)                                                                    \
	{                                                                                    \
		.id = name, .base_id = name, .index = #number, .replicas = 1, .gpu = number, \
		.bus_id = "00000000:0" #number ":00.0"                                       \
	}
#define SHARE(name, number)                                                                                         \
	{                                                                                                           \
		.id = name "::" #number, .base_id = name, .index = "0", .replicas = 2, .bus_id = "00000000:00:00.0" \
	}

static void allocate(const struct graft_kube_config *config, const struct graft_kube_resource *resource,
		     const V1beta1__ContainerAllocateRequest *request, struct graft_arena *arena)
{
	const struct graft_inventory inventory = { .n_gpus = 0 };
	const char *const *ids = graft_rpc_read_only(request->devices_ids);
	struct graft_kube_answer answer;

	if (graft_kube_allocate(config, &inventory, resource, ids, request->n_devices_ids, "0", arena, &answer, NULL) <
	    0)
		return;
	for (size_t i = 0; i < request->n_devices_ids; i++) {
		if (!graft_kube_find_device(resource, ids[i]))
			__builtin_trap();
	}
}

static void prefer(const struct graft_kube_config *config, const struct graft_kube_resource *resource,
		   const V1beta1__ContainerPreferredAllocationRequest *request, struct graft_arena *arena)
{
	const struct graft_kube_preference asked = {
		graft_rpc_read_only(request->available_deviceids), request->n_available_deviceids,
		graft_rpc_read_only(request->must_include_deviceids), request->n_must_include_deviceids,
		request->allocation_size > 0 ? (uint32_t)request->allocation_size : 0
	};
	const char *const *ids = NULL;

	if (graft_kube_prefer(config, resource, NULL, &asked, arena, &ids, NULL) < 0)
		return;
	for (size_t i = 0; i < asked.size; i++) {
		if (!graft_is_in(asked.available, asked.n_available, ids[i]) || graft_is_in(ids, i, ids[i]))
			__builtin_trap();
	}
	for (size_t i = 0; i < asked.n_required; i++) {
		if (!graft_is_in(ids, asked.size, asked.required[i]))
			__builtin_trap();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_kube_device gpus[] = { GPU("GPU-a", 0), GPU("GPU-b", 1), GPU("GPU-c", 2), GPU("GPU-d", 3) };
	struct graft_kube_device shares[] = { SHARE("GPU-a", 0), SHARE("GPU-a", 1), SHARE("GPU-b", 0),
					      SHARE("GPU-b", 1) };
	const bool whole = size > 0 && (data[0] & 2) == 0;
	const struct graft_kube_resource resource = {
		.name = "nvidia.com/gpu", .whole_gpus = whole, .devices = whole ? gpus : shares, .n_devices = 4
	};
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	struct graft_kube_config config;
	V1beta1__ContainerAllocateRequest *request = NULL;
	V1beta1__ContainerPreferredAllocationRequest *preference = NULL;

	graft_kube_config_default(&config);
	if (!arena || size == 0 || size > 4096) {
		(void)graft_arena_free(arena);
		return 0;
	}
	config.flags.plugin.sharing_policy = (enum graft_kube_policy)((data[0] >> 2) % 3);
	config.flags.plugin.device_list_strategy = 1u + (data[0] >> 4);
	if ((data[0] & 1) == 0)
		request = v1beta1__container_allocate_request__unpack(NULL, size - 1, data + 1);
	else
		preference = v1beta1__container_preferred_allocation_request__unpack(NULL, size - 1, data + 1);
	if (request)
		allocate(&config, &resource, request, arena);
	if (preference)
		prefer(&config, &resource, preference, arena);
	if (request)
		v1beta1__container_allocate_request__free_unpacked(request, NULL);
	if (preference)
		v1beta1__container_preferred_allocation_request__free_unpacked(preference, NULL);
	(void)graft_arena_free(arena);
	return 0;
}
