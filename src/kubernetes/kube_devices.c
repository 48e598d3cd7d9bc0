/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_devices: sorts the devices of a host into resources, first as if nothing were shared, then
 * with the replicas that the configuration asks for.
 */
#include "kubernetes/kube_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "kubernetes/kube_tables.h"

#define TEGRA_ID "tegra"

static const struct graft_field device_fields[] = {
	GRAFT_F_STRING(struct graft_kube_device, id, true, "for the kubelet"),
	GRAFT_F_STRING(struct graft_kube_device, base_id, true, "without the number of a replica"),
	GRAFT_F_STRING(struct graft_kube_device, index, true, "of the GPU, or GPU:MIG device"),
	GRAFT_F_U32(struct graft_kube_device, replicas, true, "how many there are of it"),
	GRAFT_F_U32(struct graft_kube_device, gpu, true, "index of its GPU in the inventory"),
	GRAFT_F_STRING(struct graft_kube_device, bus_id, false, "of its GPU"),
	GRAFT_F_BOOL(struct graft_kube_device, mig, "it is a MIG device"),
	GRAFT_F_U32(struct graft_kube_device, gi, false, "GPU instance"),
	GRAFT_F_U32(struct graft_kube_device, ci, false, "compute instance"),
	GRAFT_F_BOOL(struct graft_kube_device, has_numa_node, "its NUMA node is known"),
	GRAFT_F_U32(struct graft_kube_device, numa_node, false, "NUMA node"),
	GRAFT_F_STRINGS(struct graft_kube_device, paths, "device nodes"),
};
static const struct graft_record device_record = { "device", sizeof(struct graft_kube_device), device_fields,
						   GRAFT_COUNT(device_fields) };
static const struct graft_field resource_fields[] = {
	GRAFT_F_STRING(struct graft_kube_resource, name, true, "for the kubelet"),
	GRAFT_F_STRING(struct graft_kube_resource, socket, true, "its socket in the kubelet's directory"),
	GRAFT_F_ENUM(struct graft_kube_resource, sharing, graft_kube_sharing_strategies, 3, true,
		     "how its devices are shared"),
	GRAFT_F_BOOL(struct graft_kube_resource, fail_requests_greater_than_one, "a container gets one replica"),
	GRAFT_F_BOOL(struct graft_kube_resource, whole_gpus, "its devices are whole GPUs whose links count"),
	GRAFT_F_RECORDS(struct graft_kube_resource, devices, &device_record, "by GPU, MIG device, replica"),
};
const struct graft_record graft_kube_resource_record = { "resource", sizeof(struct graft_kube_resource),
							 resource_fields, GRAFT_COUNT(resource_fields) };
static const struct graft_field offer_fields[] = {
	GRAFT_F_RECORDS(struct graft_kube_offer, resources, &graft_kube_resource_record, "those that have devices"),
};
const struct graft_record graft_kube_offer_record = { "offer", sizeof(struct graft_kube_offer), offer_fields,
						      GRAFT_COUNT(offer_fields) };

struct offering {
	const struct graft_kube_config *config;
	const struct graft_inventory *inventory;
	const struct graft_pci_tree *tree;
	const struct graft_log *log;
	struct graft_arena *arena;
	struct graft_kube_offer *offer;
	struct graft_error *err;
};

const struct graft_kube_device *graft_kube_find_device(const struct graft_kube_resource *resource, const char *id)
{
	for (size_t i = 0; i < resource->n_devices; i++) {
		if (strcmp(resource->devices[i].id, id) == 0)
			return &resource->devices[i];
	}
	return NULL;
}

/* --- resources --- */

static struct graft_kube_resource *find_resource(const struct graft_kube_offer *offer, const char *name)
{
	for (size_t i = 0; i < offer->n_resources; i++) {
		if (strcmp(offer->resources[i].name, name) == 0)
			return &offer->resources[i];
	}
	return NULL;
}

/* Returns the resource of that name, a new one if there is none yet; NULL with the error set. */
static struct graft_kube_resource *get_resource(struct offering *offering, const char *name)
{
	struct graft_kube_resource *resource = find_resource(offering->offer, name);

	if (resource)
		return resource;
	if (graft_kube_check_resource(name, offering->err) < 0)
		return NULL;
	resource = graft_arena_push(offering->arena, &offering->offer->resources, &offering->offer->n_resources,
				    sizeof(*resource));
	if (resource) {
		resource->name = graft_arena_strdup(offering->arena, name);
		resource->socket = graft_arena_printf(offering->arena, "nvidia-%s.sock",
						      name + strlen(GRAFT_KUBE_PREFIX));
	}
	if (!resource || !resource->name || !resource->socket) {
		(void)graft_fail_memory(offering->err);
		return NULL;
	}
	return resource;
}

static int add_kube_device(struct offering *offering, const char *name, const struct graft_kube_device *device)
{
	struct graft_kube_resource *resource = get_resource(offering, name);
	struct graft_kube_device *slot;

	if (!resource)
		return -1;
	slot = graft_arena_push(offering->arena, &resource->devices, &resource->n_devices, sizeof(*slot));
	if (!slot)
		return graft_fail_memory(offering->err);
	*slot = *device;
	return 0;
}

/* --- the host's devices --- */

static int add_device_path(struct offering *offering, struct graft_kube_device *device, const char *path)
{
	if (!path)
		return 0;
	return graft_arena_push_string(offering->arena, &device->paths, &device->n_paths, path)
		   ? 0
		   : graft_fail_memory(offering->err);
}

/* The properties that a device has from its GPU. */
static int describe_gpu(struct offering *offering, size_t place, const char *id, struct graft_kube_device *ret_device)
{
	const struct graft_gpu *gpu = &offering->inventory->gpus[place];
	const struct graft_pci_tree *tree = offering->tree;

	*ret_device = (struct graft_kube_device){
		.id = id, .base_id = id, .replicas = 1, .gpu = gpu->index, .bus_id = gpu->bus_id
	};
	if (tree && place < tree->n_gpus) {
		ret_device->has_numa_node = tree->gpus[place].has_numa_node;
		ret_device->numa_node = tree->gpus[place].numa_node;
	}
	return add_device_path(offering, ret_device, gpu->node.path);
}

static int add_gpu(struct offering *offering, size_t place)
{
	const struct graft_inventory *inventory = offering->inventory;
	const struct graft_gpu *gpu = &inventory->gpus[place];
	bool wsl = inventory->platform == GRAFT_PLATFORM_WSL2;
	struct graft_kube_device device;

	if (!gpu->uuid.value) {
		graft_warn(offering->log, "GPU %u (%s) is left out: its UUID is not known", gpu->index, gpu->bus_id);
		return 0;
	}
	if (describe_gpu(offering, place, gpu->uuid.value, &device) < 0)
		return -1;
	device.index = wsl ? "all" : graft_arena_printf(offering->arena, "%u", gpu->index);
	if (!device.index)
		return graft_fail_memory(offering->err);
	/* Under WSL2 one node serves all GPUs. */
	for (size_t i = 0; wsl && i < inventory->n_nodes; i++) {
		if (add_device_path(offering, &device, inventory->nodes[i].path) < 0)
			return -1;
	}
	return add_kube_device(offering, KUBE_GPU_RESOURCE, &device);
}

static int add_mig(struct offering *offering, size_t place, const struct graft_mig_device *mig, const char *name)
{
	struct graft_kube_device device;

	if (describe_gpu(offering, place, mig->uuid.value, &device) < 0 ||
	    add_device_path(offering, &device, mig->gi_node.path) < 0 ||
	    add_device_path(offering, &device, mig->ci_node.path) < 0)
		return -1;
	device.mig = true;
	device.gi = mig->gi;
	device.ci = mig->ci;
	device.index = graft_arena_printf(offering->arena, "%u:%u", device.gpu, mig->index);
	return device.index ? add_kube_device(offering, name, &device) : graft_fail_memory(offering->err);
}

/*
 * "1c.3g.20gb" is a compute instance with only some slices of its GPU instance, which is split
 * between several.
 */
static bool is_split(const char *profile)
{
	char *end;
	unsigned long compute = strtoul(profile, &end, 10), graphics;

	if (end == profile || end[0] != 'c' || end[1] != '.')
		return false;
	graphics = strtoul(end + 2, &end, 10);
	return *end == 'g' && compute != graphics;
}

/* Returns whether NVML has described the MIG device; otherwise it is left out. */
static bool is_mig_known(const struct offering *offering, const struct graft_gpu *gpu,
			 const struct graft_mig_device *mig)
{
	if (mig->uuid.value && mig->profile.value)
		return true;
	graft_warn(offering->log, "MIG device %u:%u is left out: its %s is not known", gpu->index, mig->index,
		   mig->uuid.value ? "profile" : "UUID");
	return false;
}

static int add_migs_of_profiles(struct offering *offering, size_t place)
{
	const struct graft_gpu *gpu = &offering->inventory->gpus[place];

	for (size_t i = 0; i < gpu->n_mig_devices; i++) {
		const struct graft_mig_device *mig = &gpu->mig_devices[i];
		const char *name;

		if (!is_mig_known(offering, gpu, mig))
			continue;
		if (is_split(mig->profile.value)) {
			graft_warn(offering->log,
				   "MIG device %u:%u is left out: its profile %s shares a GPU instance with other "
				   "compute instances, which --mig-strategy=mixed does not offer",
				   gpu->index, mig->index, mig->profile.value);
			continue;
		}
		name = kube_name_mig(mig->profile.value, offering->arena);
		if (!name)
			return graft_fail_memory(offering->err);
		if (add_mig(offering, place, mig, name) < 0)
			return -1;
	}
	return 0;
}

static int add_mixed(struct offering *offering)
{
	const struct graft_inventory *inventory = offering->inventory;

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		if (gpu->excluded)
			continue;
		if ((gpu->mig_enabled ? add_migs_of_profiles(offering, i) : add_gpu(offering, i)) < 0)
			return -1;
	}
	return 0;
}

static int add_gpus(struct offering *offering)
{
	for (size_t i = 0; i < offering->inventory->n_gpus; i++) {
		if (!offering->inventory->gpus[i].excluded && add_gpu(offering, i) < 0)
			return -1;
	}
	return 0;
}

/* `single`: MIG devices stand for GPUs, so all of them must be alike (SPEC kubernetes 6.3). */
static int add_migs_of_gpu(struct offering *offering, size_t place, const char **profile)
{
	const struct graft_gpu *gpu = &offering->inventory->gpus[place];

	if (gpu->n_mig_devices == 0)
		return graft_fail(offering->err, GRAFT_INVALID, 0, "device %u has no MIG devices configured",
				  gpu->index);
	for (size_t i = 0; i < gpu->n_mig_devices; i++) {
		const struct graft_mig_device *mig = &gpu->mig_devices[i];

		if (!is_mig_known(offering, gpu, mig))
			continue;
		if (*profile && strcmp(*profile, mig->profile.value) != 0)
			return graft_fail(offering->err, GRAFT_INVALID, 0,
					  "more than one MIG device type present on node");
		*profile = mig->profile.value;
		if (add_mig(offering, place, mig, KUBE_GPU_RESOURCE) < 0)
			return -1;
	}
	return 0;
}

static int add_single(struct offering *offering)
{
	const struct graft_inventory *inventory = offering->inventory;
	size_t n = 0, n_enabled = 0;
	const char *profile = NULL;

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		n += !inventory->gpus[i].excluded;
		n_enabled += !inventory->gpus[i].excluded && inventory->gpus[i].mig_enabled;
	}
	if (n_enabled == 0)
		return add_gpus(offering);
	if (n_enabled < n)
		return graft_fail(offering->err, GRAFT_INVALID, 0,
				  "all devices on the node must be configured with the same migEnabled value");
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (!inventory->gpus[i].excluded && add_migs_of_gpu(offering, i, &profile) < 0)
			return -1;
	}
	return 0;
}

static int add_board_device(struct offering *offering)
{
	const struct graft_kube_device device = { .id = TEGRA_ID, .base_id = TEGRA_ID, .index = "0", .replicas = 1 };

	if ((offering->config->flags.plugin.device_list_strategy & GRAFT_KUBE_LIST_CDI) != 0)
		return graft_fail(offering->err, GRAFT_INVALID, 0, KUBE_CDI_NEEDS_NVML);
	return add_kube_device(offering, KUBE_GPU_RESOURCE, &device);
}

static int add_devices(struct offering *offering)
{
	if (kube_is_board(offering->config, offering->inventory))
		return add_board_device(offering);
	switch (offering->config->flags.mig_strategy) {
	case GRAFT_KUBE_MIG_SINGLE:
		return add_single(offering);
	case GRAFT_KUBE_MIG_MIXED:
		return add_mixed(offering);
	case GRAFT_KUBE_MIG_NONE:
		break;
	}
	return add_gpus(offering);
}

/* --- sharing --- */

static void warn_of_absent(const struct offering *offering, const struct graft_kube_shared_resource *shared,
			   const struct graft_kube_resource *resource)
{
	for (size_t i = 0; i < shared->n_devices; i++) {
		bool there = false;

		for (size_t j = 0; resource && j < resource->n_devices && !there; j++)
			there = strcmp(resource->devices[j].index, shared->devices[i]) == 0 ||
				strcmp(resource->devices[j].base_id, shared->devices[i]) == 0;
		if (!there)
			graft_warn(offering->log, "device '%s' cannot be shared: resource %s does not have it",
				   shared->devices[i], shared->name);
	}
	if (shared->n_devices == 0 && (resource ? resource->n_devices : 0) < shared->n_first)
		graft_warn(offering->log, "%u devices are to be shared, but resource %s has only %zu", shared->n_first,
			   shared->name, resource ? resource->n_devices : 0);
}

static int add_replicas(struct offering *offering, const char *name, const struct graft_kube_device *device,
			uint32_t replicas)
{
	for (uint32_t i = 0; i < replicas; i++) {
		struct graft_kube_device replica = *device;

		replica.replicas = replicas;
		replica.id = graft_arena_printf(offering->arena, "%s::%u", device->base_id, i);
		if (!replica.id)
			return graft_fail_memory(offering->err);
		if (add_kube_device(offering, name, &replica) < 0)
			return -1;
	}
	return 0;
}

/*
 * Moves the devices of one resource into the offer: the shared ones as replicas, the others as they
 * are. Of several rules for a device the first one applies.
 */
static int share_resource(struct offering *offering, const struct graft_kube_replication *replication,
			  const struct graft_kube_resource *whole)
{
	for (size_t i = 0; i < whole->n_devices; i++) {
		const struct graft_kube_device *device = &whole->devices[i];
		const struct graft_kube_shared_resource *rule = kube_find_sharing(replication, whole->name,
										  device->index, device->base_id, i);
		const char *name = rule ? kube_name_shared(replication, rule, offering->arena) : whole->name;
		int rc;

		if (!name)
			return graft_fail_memory(offering->err);
		rc = rule ? add_replicas(offering, name, device, rule->replicas)
			  : add_kube_device(offering, name, device);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int share_devices(struct offering *offering)
{
	enum graft_kube_sharing_strategy strategy;
	const struct graft_kube_replication *replication = graft_kube_replication(offering->config, &strategy);
	const struct graft_kube_offer whole = *offering->offer;

	if (!replication)
		return 0;
	for (size_t i = 0; i < replication->n_resources; i++)
		warn_of_absent(offering, &replication->resources[i],
			       find_resource(&whole, replication->resources[i].name));
	*offering->offer = (struct graft_kube_offer){ .n_resources = 0 };
	for (size_t i = 0; i < whole.n_resources; i++) {
		if (share_resource(offering, replication, &whole.resources[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < offering->offer->n_resources; i++) {
		struct graft_kube_resource *resource = &offering->offer->resources[i];

		for (size_t j = 0; j < resource->n_devices; j++) {
			if (resource->devices[j].replicas > 1)
				resource->sharing = strategy;
		}
		resource->fail_requests_greater_than_one = resource->sharing != GRAFT_KUBE_NOT_SHARED &&
							   replication->fail_requests_greater_than_one;
	}
	return 0;
}

static bool is_of_whole_gpus(const struct offering *offering, const struct graft_kube_resource *resource)
{
	if (offering->inventory->platform != GRAFT_PLATFORM_NATIVE || resource->sharing != GRAFT_KUBE_NOT_SHARED)
		return false;
	for (size_t i = 0; i < resource->n_devices; i++) {
		if (resource->devices[i].mig || !resource->devices[i].bus_id)
			return false;
	}
	return true;
}

int graft_kube_offer(const struct graft_kube_config *config, const struct graft_inventory *inventory,
		     const struct graft_pci_tree *tree, const struct graft_log *log, struct graft_arena *arena,
		     struct graft_kube_offer *ret_offer, struct graft_error *err)
{
	struct offering offering = { config, inventory, tree, log, arena, ret_offer, err };

	*ret_offer = (struct graft_kube_offer){ .n_resources = 0 };
	if (add_devices(&offering) < 0 || share_devices(&offering) < 0)
		return -1;
	for (size_t i = 0; i < ret_offer->n_resources; i++)
		ret_offer->resources[i].whole_gpus = is_of_whole_gpus(&offering, &ret_offer->resources[i]);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
