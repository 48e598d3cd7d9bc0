/* SPDX-License-Identifier: Apache-2.0 */
/* hardware: tables and arithmetic; reads nothing and knows no file. */
#include "hardware.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/procfs.h"
#include "identity.h"

/* --- PCI --- */

#define BRIDGES_MAX 16u

/* "pci0000:16" */
static bool is_host_bridge(const char *name)
{
	static const char digits[] = "0123456789abcdefABCDEF";

	return strncmp(name, "pci", 3) == 0 && strspn(name + 3, digits) == 4 && name[7] == ':' &&
	       strspn(name + 8, digits) == 2;
}

bool sim_hardware_bridges_valid(const char *bridges)
{
	unsigned int n = 0;
	int length = 0;

	if (!is_host_bridge(bridges))
		return false;
	for (bridges += strlen("pci0000:16"); *bridges == '/' && n < BRIDGES_MAX; n++) {
		struct graft_pci_address address;
		char name[16];

		bridges++;
		length = (int)strcspn(bridges, "/");
		(void)snprintf(name, sizeof(name), "%.*s", length, bridges);
		if (length != (int)strlen("0000:16:01.0") || !graft_pci_parse(name, &address))
			return false;
		bridges += length;
	}
	return *bridges == '\0';
}

/*
 * Returns how many bridges, from the host bridge down, are the same; *ret_a and *ret_b are their
 * numbers.
 */
static uint32_t count_common(const char *a, const char *b, uint32_t *ret_a, uint32_t *ret_b)
{
	uint32_t common = 0;
	bool same = true;

	*ret_a = *ret_b = 1;
	for (const char *c = a; *c != '\0'; c++)
		*ret_a += *c == '/';
	for (const char *c = b; *c != '\0'; c++)
		*ret_b += *c == '/';
	while (same && *a != '\0' && *b != '\0') {
		size_t length_a = strcspn(a, "/"), length_b = strcspn(b, "/");

		same = length_a == length_b && memcmp(a, b, length_a) == 0;
		common += same;
		a += length_a + (a[length_a] == '/');
		b += length_b + (b[length_b] == '/');
	}
	return common;
}

/* Shared bridges are at the top. */
bool sim_hardware_bridges_agree(const char *a, const char *b)
{
	uint32_t n_a, n_b, common = count_common(a, b, &n_a, &n_b), at = 0;

	for (; *a != '\0'; at++) {
		size_t length = strcspn(a, "/");
		const char *found = memmem(b, strlen(b), a, length);

		if (at >= common && found)
			return false;
		a += length + (a[length] == '/');
	}
	return true;
}

/* As nvmlGpuTopologyLevel_t. A switch has an upstream port and, for each device, a downstream port. */
static uint8_t get_distance(const struct sim_gpu *a, const struct sim_gpu *b)
{
	enum { SAME_BOARD = 0, ONE_SWITCH = 10, SWITCHES = 20, HOST_BRIDGE = 30, SAME_NODE = 40, SAME_MACHINE = 50 };
	uint32_t n_a, n_b, common = count_common(a->bridges, b->bridges, &n_a, &n_b);

	if (a == b || (common > 1 && common == n_a && common == n_b))
		return SAME_BOARD;
	if (common > 2)
		return n_a == common + 1 && n_b == common + 1 ? ONE_SWITCH : SWITCHES;
	if (common > 0)
		return HOST_BRIDGE;
	return a->numa_node == b->numa_node ? SAME_NODE : SAME_MACHINE;
}

/* The libraries do not know GPUs that the driver does not use. */
void sim_hardware_distances(const struct sim_topology *topology, const struct sim_gpu *gpu, struct sim_data_gpu *out)
{
	uint32_t n = 0;

	for (size_t i = 0; i < topology->n_gpus; i++) {
		if (!topology->gpus[i].excluded)
			out->distances[n++] = get_distance(gpu, &topology->gpus[i]);
	}
}

/* --- NVLink --- */

/* Sources: NVIDIA's data sheets; speeds are those that `nvidia-smi nvlink -s` shows. */
static const struct {
	const char *key; /* start of the model's key */
	uint32_t n_links, version, speed;
	enum { TO_OTHERS, RACK /* switches outside of the host */, BRIDGED /* only where declared */ } kind;
} links[] = {
	{ "V100-SXM2", 6, 2, 25781, TO_OTHERS },  { "A100-SXM4", 12, 3, 25000, TO_OTHERS },
	{ "H100-SXM5", 18, 4, 26562, TO_OTHERS }, { "H200-SXM5", 18, 4, 26562, TO_OTHERS },
	{ "GB200", 18, 5, 50000, RACK },          { "GB300", 18, 5, 50000, RACK },
	{ "B200", 18, 5, 50000, TO_OTHERS },      { "B300", 18, 5, 50000, TO_OTHERS },
	{ "H100-PCIe", 12, 4, 25000, BRIDGED },   { "A30", 4, 3, 25000, BRIDGED },
	{ "RTX-A6000", 4, 3, 14062, BRIDGED },
};

static size_t find_links(const struct sim_model *model)
{
	size_t i = 0;

	while (i < GRAFT_COUNT(links) && strncmp(model->key, links[i].key, strlen(links[i].key)) != 0)
		i++;
	return i;
}

uint32_t sim_hardware_max_links(const struct sim_model *model)
{
	size_t row = find_links(model);

	return row < GRAFT_COUNT(links) ? links[row].n_links : 0;
}

uint32_t sim_hardware_used_links(const struct sim_topology *topology, uint32_t gpu)
{
	uint32_t n = 0;

	for (size_t i = 0; i < topology->n_nvlinks; i++) {
		if (topology->nvlinks[i].a == gpu || topology->nvlinks[i].b == gpu)
			n += topology->nvlinks[i].count;
	}
	return n;
}

/* The index of a GPU in the data. */
static uint8_t data_index(const struct sim_topology *topology, size_t gpu)
{
	uint8_t index = 0;

	for (size_t i = 0; i < gpu; i++)
		index += !topology->gpus[i].excluded;
	return topology->gpus[gpu].excluded ? SIM_LINK_DOWN : index;
}

/* In the order in which they are declared; the others are down. */
static void place_declared_links(const struct sim_topology *topology, size_t self, struct sim_data_gpu *out)
{
	uint32_t n = 0;

	memset(out->links, SIM_LINK_DOWN, sizeof(out->links));
	for (size_t i = 0; i < topology->n_nvlinks; i++) {
		const struct sim_nvlink *link = &topology->nvlinks[i];

		for (uint32_t k = 0; (link->a == self || link->b == self) && k < link->count; k++)
			out->links[n++] = data_index(topology, link->a == self ? link->b : link->a);
	}
}

/* Without switches, each of the other GPUs has an equal share of the links. */
static void share_links(const struct sim_topology *topology, size_t self, struct sim_data_gpu *out)
{
	uint8_t others[SIM_MAX_GPUS];
	uint32_t n = 0;

	for (size_t i = 0; i < topology->n_gpus; i++) {
		if (i != self && !topology->gpus[i].excluded)
			others[n++] = data_index(topology, i);
	}
	for (uint32_t k = 0; k < out->n_links; k++)
		out->links[k] = n > 0 ? others[k * n / out->n_links] : SIM_LINK_DOWN;
}

void sim_hardware_links(const struct sim_topology *topology, const struct sim_gpu *gpu, struct sim_data_gpu *out)
{
	size_t row = find_links(gpu->model), self = (size_t)(gpu - topology->gpus);

	/* The links of a single GPU lead nowhere. */
	if (row == GRAFT_COUNT(links) || (topology->n_gpus < 2 && topology->nvswitches == 0) ||
	    (links[row].kind == BRIDGED && topology->n_nvlinks == 0))
		return;
	out->n_links = links[row].n_links;
	out->link_version = links[row].version;
	out->link_speed = links[row].speed;
	if (topology->n_nvlinks > 0)
		place_declared_links(topology, self, out);
	else if (topology->nvswitches > 0)
		memset(out->links, SIM_LINK_SWITCH, sizeof(out->links));
	else if (links[row].kind == RACK)
		memset(out->links, SIM_LINK_RACK, sizeof(out->links));
	else
		share_links(topology, self, out);
}

void sim_hardware_fabric(const struct sim_topology *topology, struct sim_data *out)
{
	enum { NOT_STARTED = 1, COMPLETED = 3 };
	size_t row = topology->n_gpus > 0 ? find_links(topology->gpus[0].model) : GRAFT_COUNT(links);
	uint64_t halves[2];

	out->n_switches = topology->nvswitches;
	out->fabricmanager = topology->fabricmanager;
	/* Since Hopper the driver itself knows the fabric. */
	if (row == GRAFT_COUNT(links) || links[row].version < 4 || links[row].kind == BRIDGED ||
	    topology->driver_major < 525)
		return;
	if (links[row].kind == RACK) {
		/* One rack is one cluster. Within a single host the UUID is all zeros. */
		halves[0] = sim_hash(topology->name, "fabric", 0);
		halves[1] = sim_hash(topology->name, "fabric", 1);
		memcpy(out->fabric_uuid, halves, sizeof(halves));
		out->fabric = COMPLETED;
	} else if (topology->nvswitches > 0) {
		out->fabric = topology->fabricmanager ? COMPLETED : NOT_STARTED;
	}
}

/* --- MIG --- */

/*
 * NVML's numbers of profiles: slices of the GPU instance, and which one it is of the profiles with
 * that many slices. The id is the one that nvidia-smi shows on a GPU with eight memory slices, or
 * four (A30).
 */
static const struct {
	uint32_t slices;
	enum { PLAIN, WITH_MEDIA, MORE_MEMORY } kind;
	uint32_t id_of_8, id_of_4;
} slots[SIM_MAX_MIG_PROFILES] = {
	[0] = { 1, PLAIN, 19, 14 },       [1] = { 2, PLAIN, 14, 5 },       [2] = { 3, PLAIN, 9, 0 },
	[3] = { 4, PLAIN, 5, 0 },         [4] = { 7, PLAIN, 0, 0 },        [5] = { 8, PLAIN, 0, 0 },
	[6] = { 6, PLAIN, 0, 0 },         [7] = { 1, WITH_MEDIA, 20, 21 }, [8] = { 2, WITH_MEDIA, 13, 6 },
	[9] = { 1, MORE_MEMORY, 15, 15 },
};

static size_t find_slot(uint32_t slices, int kind)
{
	size_t i = 0;

	while (i < SIM_MAX_MIG_PROFILES && (slots[i].slices != slices || (int)slots[i].kind != kind))
		i++;
	return i;
}

static void add_profile(const struct sim_model *model, const char *name, uint32_t all_memory, struct sim_data_gpu *out)
{
	struct sim_mig_profile facts;
	struct sim_data_mig_profile *profile;
	uint32_t all_slices, unused;
	size_t slot;

	if (!sim_mig_profile(model, name, &facts))
		return;
	sim_mig_capacity(model, &all_slices, &unused);
	slot = find_slot(facts.slices, strchr(name, '+') ? WITH_MEDIA : PLAIN);
	if (slot < SIM_MAX_MIG_PROFILES && out->mig_profiles[slot].name[0] != '\0')
		slot = find_slot(facts.slices, MORE_MEMORY);
	if (slot == SIM_MAX_MIG_PROFILES)
		return;
	profile = &out->mig_profiles[slot];
	(void)snprintf(profile->name, sizeof(profile->name), "%s", name);
	profile->id = all_memory == 8 ? slots[slot].id_of_8 : slots[slot].id_of_4;
	profile->slices = facts.slices;
	profile->memory_slices = facts.memory_slices;
	/* The driver gives the media engines of "+me" to one instance only. */
	profile->instances = slots[slot].kind == WITH_MEDIA ? 1 : all_slices / facts.slices;
	if (profile->instances > all_memory / facts.memory_slices)
		profile->instances = all_memory / facts.memory_slices;
	profile->multiprocessors = facts.multiprocessors;
	profile->slice_multiprocessors = facts.slice_multiprocessors;
	profile->memory_mib = facts.memory_mib;
}

/*
 * Finds room for the GPU instance of MIG device `i`, and takes it. The driver puts an instance at a
 * multiple of its size; one of three compute slices begins at the upper half, one of four always at
 * the lower.
 */
static void place_instance(struct sim_data_gpu *gpu, uint32_t i, uint32_t all_memory, uint32_t *taken)
{
	const struct sim_data_mig_profile *profile = &gpu->mig_profiles[gpu->mig[i].gi_profile];
	uint32_t size = profile->memory_slices, mask = (1u << size) - 1;
	bool from_above = profile->slices == 3;

	for (uint32_t n = 0; size > 0 && n < all_memory / size; n++) {
		uint32_t start = from_above ? all_memory - (n + 1) * size : n * size;

		if (*taken & mask << start)
			continue;
		*taken |= mask << start;
		gpu->mig[i].gi_start = start;
		return;
	}
}

/* The largest instances come first, since they have the least choice. */
static void place_instances(struct sim_data_gpu *gpu, uint32_t all_memory)
{
	uint32_t taken = 0;

	for (uint32_t slices = 8; slices > 0; slices--) {
		for (uint32_t i = 0; i < gpu->n_mig; i++) {
			struct sim_data_mig *mig = &gpu->mig[i];

			if (mig->gi_slices != slices)
				continue;
			if (i > 0 && mig->gi == mig[-1].gi) { /* another compute instance of the same one */
				mig->gi_start = mig[-1].gi_start;
				mig->ci_start = mig[-1].ci_start + mig[-1].ci_slices;
			} else {
				place_instance(gpu, i, all_memory, &taken);
			}
		}
	}
}

void sim_hardware_mig(const struct sim_gpu *gpu, struct sim_data_gpu *out)
{
	uint32_t all_slices, all_memory;
	char name[32];

	sim_mig_capacity(gpu->model, &all_slices, &all_memory);
	for (const char *at = gpu->model->mig_profiles; *at != '\0'; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");

		(void)snprintf(name, sizeof(name), "%.*s", (int)length, at);
		add_profile(gpu->model, name, all_memory, out);
		at += length;
	}
	for (uint32_t i = 0; i < out->n_mig; i++) {
		for (uint32_t k = 0; k < SIM_MAX_MIG_PROFILES; k++) {
			if (strcmp(out->mig_profiles[k].name, gpu->mig[i].profile) == 0)
				out->mig[i].gi_profile = k;
		}
	}
	place_instances(out, all_memory);
}
