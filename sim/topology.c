/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology: reads a page of YAML in two passes: the tables read what is written, then the finish_
 * functions check that it is consistent and derive the rest. Creates no files and knows no layout
 * of directories.
 */
#include "topology.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/procfs.h"
#include "hardware.h"
#include "identity.h"
#include "yaml_reader.h"

#define ARENA_MAX ((size_t)8 * 1024 * 1024)

const char *const sim_layout_names[6] = { "debian", "rhel", "driver-container", "nixos", "wsl2", "tegra" };
static const char *const machine_names[] = { "x86_64", "aarch64" };
static const char *const gate_names[] = { "gds", "mofed", "gdrcopy" };
static const char *const files_names[] = { "base", "video", "graphics", "ngx", "32-bit" };

/* One item for the first, second... GPU of a group. */
struct list {
	const char **items;
	size_t n;
};

/* A group of equal GPUs, as described in the file. */
struct group {
	const yaml_node_t *node;
	const struct sim_model *model;
	uint32_t count;
	struct list bus_ids, uuids, minors, numa_nodes, bridges;
	const yaml_node_t **mig; /* one node per profile, so that errors have a place */
	size_t n_mig;
	bool mig_enabled, excluded;
};

/* The file as read, before it is checked. */
struct draft {
	struct sim_topology *topology;
	const char *driver, *module;
	struct group *groups;
	size_t n_groups;
	const yaml_node_t *driver_node, *faults, *nvlinks;
};

enum sim_machine sim_machine_native(void)
{
#if defined(__aarch64__)
	return SIM_MACHINE_AARCH64;
#else
	return SIM_MACHINE_X86_64;
#endif
}

const char *sim_machine_name(enum sim_machine machine)
{
	return machine_names[machine];
}

uint32_t sim_mig_minor(uint32_t gpu_minor, uint32_t gi, int ci)
{
	/*
	 * The driver's numbering: 1 and 2 are config and monitor; then, for each of 32 GPUs, 15
	 * instances of 1 + 8 nodes.
	 */
	return 3 + gpu_minor * 135 + gi * 9 + (ci < 0 ? 0 : 1 + (uint32_t)ci);
}

/* --- reading --- */

static int read_word(const struct sim_yaml *yaml, const yaml_node_t *node, const char *const *words, size_t n_words,
		     const char *what, unsigned int *ret_word)
{
	const char *text = sim_yaml_scalar(yaml, node);

	for (size_t i = 0; text && i < n_words; i++) {
		if (strcmp(words[i], text) == 0) {
			*ret_word = (unsigned int)i;
			return 0;
		}
	}
	return text ? sim_yaml_fail(yaml, node, "unknown %s '%s'", what, text) : -1;
}

static int read_layout(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	unsigned int word = 0;

	if (read_word(yaml, node, sim_layout_names, GRAFT_COUNT(sim_layout_names), "layout", &word) < 0)
		return -1;
	*(enum sim_layout *)field = (enum sim_layout)word;
	return 0;
}

static int read_machine(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	const char *text = sim_yaml_scalar(yaml, node);
	unsigned int word = 0;

	if (text && strcmp(text, "native") == 0)
		return 0;
	if (read_word(yaml, node, machine_names, GRAFT_COUNT(machine_names), "machine", &word) < 0)
		return -1;
	*(enum sim_machine *)field = (enum sim_machine)word;
	return 0;
}

/* Words that each set a bit. */
struct bits {
	const char *const *words;
	size_t n_words;
	const char *what;
	unsigned int *set;
};

static int add_bit(const struct sim_yaml *yaml, const yaml_node_t *node, void *arg)
{
	const struct bits *bits = arg;
	unsigned int word = 0;

	if (read_word(yaml, node, bits->words, bits->n_words, bits->what, &word) < 0)
		return -1;
	*bits->set |= 1u << word;
	return 0;
}

static int read_files(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	struct bits bits = { files_names, GRAFT_COUNT(files_names), "class of libraries", field };

	return sim_yaml_sequence(yaml, node, bits.n_words, add_bit, &bits);
}

static int read_gates(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	struct bits bits = { gate_names, GRAFT_COUNT(gate_names), "gate", field };

	return sim_yaml_sequence(yaml, node, bits.n_words, add_bit, &bits);
}

static int add_yaml_string(const struct sim_yaml *yaml, const yaml_node_t *node, void *arg)
{
	struct list *list = arg;
	const char *text = sim_yaml_scalar(yaml, node);

	if (!text)
		return -1;
	if (!graft_arena_push_string(yaml->arena, &list->items, &list->n, text))
		return graft_fail_memory(yaml->err);
	return 0;
}

static int read_list(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	return sim_yaml_sequence(yaml, node, SIM_MAX_GPUS, add_yaml_string, field);
}

static int add_node(const struct sim_yaml *yaml, const yaml_node_t *node, void *arg)
{
	struct group *group = arg;
	const yaml_node_t **item = graft_arena_push(yaml->arena, &group->mig, &group->n_mig, sizeof(*item));

	if (!item)
		return graft_fail_memory(yaml->err);
	*item = node;
	return 0;
}

static int read_mig(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	struct group *group = field;

	group->mig_enabled = true;
	return sim_yaml_sequence(yaml, node, SIM_MAX_MIG, add_node, group);
}

static int read_model(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	const char *text = sim_yaml_scalar(yaml, node);
	const struct sim_model *model = text ? sim_model_find(text) : NULL;

	if (text && !model)
		return sim_yaml_fail(yaml, node, "unknown model '%s'; 'graft-sim list --models' names them", text);
	*(const struct sim_model **)field = model;
	return model ? 0 : -1;
}

#define GROUP(m) offsetof(struct group, m)
static const struct sim_yaml_key group_keys[] = {
	{ "model", read_model, GROUP(model) },          { "count", sim_yaml_u32, GROUP(count) },
	{ "bus-ids", read_list, GROUP(bus_ids) },       { "uuids", read_list, GROUP(uuids) },
	{ "minors", read_list, GROUP(minors) },         { "numa-nodes", read_list, GROUP(numa_nodes) },
	{ "bridges", read_list, GROUP(bridges) },       { "mig", read_mig, 0 },
	{ "excluded", sim_yaml_bool, GROUP(excluded) },
};

static int add_group(const struct sim_yaml *yaml, const yaml_node_t *node, void *arg)
{
	struct draft *draft = arg;
	struct group *group = graft_arena_push(yaml->arena, &draft->groups, &draft->n_groups, sizeof(*group));

	if (!group)
		return graft_fail_memory(yaml->err);
	*group = (struct group){ .node = node, .count = 1 };
	if (sim_yaml_mapping(yaml, node, group_keys, GRAFT_COUNT(group_keys), group) < 0)
		return -1;
	if (!group->model)
		return sim_yaml_fail(yaml, node, "a group of GPUs needs a 'model'");
	return 0;
}

static int read_gpus(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	return sim_yaml_sequence(yaml, node, SIM_MAX_GPUS, add_group, field);
}

/* Faults and NVLinks refer to GPUs by index, so they are read once the GPUs are known. */
static int keep_node(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	(void)yaml;
	*(const yaml_node_t **)field = node;
	return 0;
}

static int read_driver(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	struct draft *draft = field;

	draft->driver_node = node;
	return sim_yaml_string(yaml, node, &draft->driver);
}

static const struct sim_yaml_key major_keys[] = {
	{ "nvidia-uvm", sim_yaml_u32, offsetof(struct sim_majors, uvm) },
	{ "nvidia-caps", sim_yaml_u32, offsetof(struct sim_majors, caps) },
	{ "nvidia-caps-imex-channels", sim_yaml_u32, offsetof(struct sim_majors, imex) },
	{ "nvidia-nvswitch", sim_yaml_u32, offsetof(struct sim_majors, nvswitch) },
	{ "nvidia-fs", sim_yaml_u32, offsetof(struct sim_majors, fs) },
	{ "gdrdrv", sim_yaml_u32, offsetof(struct sim_majors, gdrdrv) },
};

static int read_majors(const struct sim_yaml *yaml, const yaml_node_t *node, void *field)
{
	return sim_yaml_mapping(yaml, node, major_keys, GRAFT_COUNT(major_keys), field);
}

/* The keys of the topology itself, and those of the draft around it. */
#define TOPOLOGY(m) offsetof(struct sim_topology, m)
static const struct sim_yaml_key topology_keys[] = {
	{ "name", sim_yaml_string, TOPOLOGY(name) },
	{ "description", sim_yaml_string, TOPOLOGY(description) },
	{ "cuda", sim_yaml_string, TOPOLOGY(cuda) },
	{ "layout", read_layout, TOPOLOGY(layout) },
	{ "machine", read_machine, TOPOLOGY(machine) },
	{ "open-module", sim_yaml_bool, TOPOLOGY(open_module) },
	{ "files", read_files, TOPOLOGY(files) },
	{ "firmware", sim_yaml_bool, TOPOLOGY(firmware) },
	{ "persistenced", sim_yaml_bool, TOPOLOGY(persistenced) },
	{ "fabricmanager", sim_yaml_bool, TOPOLOGY(fabricmanager) },
	{ "mps", sim_yaml_bool, TOPOLOGY(mps) },
	{ "filelist", sim_yaml_bool, TOPOLOGY(filelist) },
	{ "uuids-in-procfs", sim_yaml_bool, TOPOLOGY(uuids_in_procfs) },
	{ "gates", read_gates, TOPOLOGY(gates) },
	{ "nvswitches", sim_yaml_u32, TOPOLOGY(nvswitches) },
	{ "imex-channels", sim_yaml_u32, TOPOLOGY(imex_channels) },
	{ "majors", read_majors, TOPOLOGY(majors) },
};
static const struct sim_yaml_key draft_keys[] = {
	{ "driver", read_driver, 0 },
	{ "module", sim_yaml_string, offsetof(struct draft, module) },
	{ "gpus", read_gpus, 0 },
	{ "faults", keep_node, offsetof(struct draft, faults) },
	{ "nvlinks", keep_node, offsetof(struct draft, nvlinks) },
};

/* One mapping fills two structs: each key goes to the one whose table contains it. */
static int read_root(const struct sim_yaml *yaml, const yaml_node_t *node, struct draft *draft)
{
	struct sim_yaml_key keys[GRAFT_COUNT(topology_keys) + GRAFT_COUNT(draft_keys)];
	struct both {
		struct draft draft;
		struct sim_topology topology;
	} both = { *draft, *draft->topology };

	for (size_t i = 0; i < GRAFT_COUNT(topology_keys); i++) {
		keys[i] = topology_keys[i];
		keys[i].offset += offsetof(struct both, topology);
	}
	memcpy(&keys[GRAFT_COUNT(topology_keys)], draft_keys, sizeof(draft_keys));
	if (sim_yaml_mapping(yaml, node, keys, GRAFT_COUNT(keys), &both) < 0)
		return -1;
	*draft = both.draft;
	*draft->topology = both.topology;
	return 0;
}

/* --- deriving --- */

/* Accepts two or three numbers separated by dots, such as "550.54.14". */
static bool is_version(const char *text, unsigned int *ret_major)
{
	unsigned int parts = 1, digits = 0;

	*ret_major = (unsigned int)strtoul(text, NULL, 10);
	for (const char *c = text; *c != '\0'; c++) {
		if (*c >= '0' && *c <= '9' && digits < 6) {
			digits++;
		} else if (*c == '.' && digits > 0) {
			parts++;
			digits = 0;
		} else {
			return false;
		}
	}
	return digits > 0 && (parts == 2 || parts == 3);
}

static int finish_versions(const struct sim_yaml *yaml, struct draft *draft)
{
	struct sim_topology *topology = draft->topology;
	unsigned int major, minor = 0;

	if (!draft->driver)
		return sim_yaml_fail(yaml, NULL, "key 'driver' is missing: a version, or none");
	if (strcmp(draft->driver, "none") == 0)
		return draft->n_groups > 0 ? sim_yaml_fail(yaml, draft->driver_node, "GPUs need a driver version here")
					   : 0;
	if (!is_version(draft->driver, &topology->driver_major) || strlen(draft->driver) > 20)
		return sim_yaml_fail(yaml, draft->driver_node, "'%s' is not a driver version", draft->driver);
	topology->driver = draft->driver;
	topology->module = draft->module ? draft->module : draft->driver;
	if (strcmp(topology->module, "none") == 0)
		topology->module = NULL;
	else if (!is_version(topology->module, &major) || strlen(topology->module) > 20)
		return sim_yaml_fail(yaml, draft->driver_node, "module '%s' is not a version", topology->module);
	if (!topology->cuda || !is_version(topology->cuda, &major) || strlen(topology->cuda) > 8 || major > 999)
		return sim_yaml_fail(yaml, draft->driver_node, "the driver needs a 'cuda' version, such as \"12.4\"");
	/* Windows and Tegra provide the kernel side themselves; no module is visible. */
	if (topology->layout == SIM_LAYOUT_WSL2 || topology->layout == SIM_LAYOUT_TEGRA)
		topology->module = NULL;
	minor = (unsigned int)strtoul(strchr(topology->cuda, '.') + 1, NULL, 10);
	topology->cuda_number = major * 1000 + minor * 10;
	return 0;
}

/* Bus numbers of well-known machines; with other numbers of GPUs they are spread evenly. */
static uint32_t default_bus(uint32_t count, uint32_t index)
{
	static const uint8_t one[] = { 0x01 }, four[] = { 0x07, 0x0f, 0x47, 0x4e },
			     eight[] = { 0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf },
			     sixteen[] = { 0x34, 0x36, 0x39, 0x3b, 0x57, 0x59, 0x5c, 0x5e,
					   0xb7, 0xb9, 0xbc, 0xbe, 0xe0, 0xe2, 0xe5, 0xe7 };

	if (count == 1)
		return one[0];
	if (count <= 4)
		return four[index];
	if (count <= 8)
		return eight[index];
	return count <= 16 ? sixteen[index] : 0x10 + index * 6;
}

/* Returns what the group's list says of the GPU at that place, or NULL. */
static const char *item_of(const struct list *list, uint32_t place)
{
	return place < list->n ? list->items[place] : NULL;
}

static int parse_group_bus_id(const struct sim_yaml *yaml, const struct group *group, const char *text,
			      struct sim_gpu *gpu)
{
	struct graft_pci_address address;

	if (!text)
		return 0;
	if (!graft_pci_parse(text, &address) || address.function != 0)
		return sim_yaml_fail(yaml, group->node, "'%s' is not a bus id of a GPU, such as \"0000:1b:00.0\"",
				     text);
	gpu->domain = address.domain;
	gpu->bus = address.bus;
	gpu->device = address.device;
	return 0;
}

static int parse_group_number(const struct sim_yaml *yaml, const struct group *group, const char *text,
			      unsigned long max, const char *what, uint32_t *ret_number)
{
	unsigned long number;
	char *end;

	if (!text)
		return 0;
	number = strtoul(text, &end, 10);
	if (end == text || *end != '\0' || number > max)
		return sim_yaml_fail(yaml, group->node, "'%s' is not %s from 0 to %lu", text, what, max);
	*ret_number = (uint32_t)number;
	return 0;
}

static bool is_uuid(const char *text)
{
	static const char shape[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	for (size_t i = 0; i < sizeof(shape); i++) {
		bool hex = text[i] != '\0' && strchr("0123456789abcdef", text[i]) != NULL;

		if (shape[i] == 'x' ? !hex : text[i] != shape[i])
			return false;
	}
	return true;
}

static int add_gpu(const struct sim_yaml *yaml, struct draft *draft, const struct group *group, uint32_t place)
{
	struct sim_topology *topology = draft->topology;
	struct sim_gpu *gpu = graft_arena_push(topology->arena, &topology->gpus, &topology->n_gpus, sizeof(*gpu));

	if (!gpu)
		return graft_fail_memory(yaml->err);
	if (topology->n_gpus > SIM_MAX_GPUS)
		return sim_yaml_fail(yaml, group->node, "more than %u GPUs", SIM_MAX_GPUS);
	*gpu = (struct sim_gpu){
		.model = group->model, .excluded = group->excluded, .minor = UINT32_MAX, .numa_node = UINT32_MAX
	};
	gpu->name = sim_model_name(group->model, topology->driver_major);
	gpu->bus = default_bus(group->count, place);
	gpu->mig_enabled = group->mig_enabled;
	gpu->group = group;
	gpu->bridges = item_of(&group->bridges, place);
	gpu->uuid = item_of(&group->uuids, place);
	if (parse_group_bus_id(yaml, group, item_of(&group->bus_ids, place), gpu) < 0 ||
	    parse_group_number(yaml, group, item_of(&group->minors, place), 253, "a minor", &gpu->minor) < 0 ||
	    parse_group_number(yaml, group, item_of(&group->numa_nodes, place), 63, "a NUMA node", &gpu->numa_node) < 0)
		return -1;
	if (gpu->uuid && !is_uuid(gpu->uuid))
		return sim_yaml_fail(yaml, group->node, "'%s' is not the UUID of a GPU", gpu->uuid);
	if (gpu->bridges && !sim_hardware_bridges_valid(gpu->bridges))
		return sim_yaml_fail(yaml, group->node,
				     "'%s' is not a path of PCI bridges, such as \"pci0000:16/0000:16:01.0\"",
				     gpu->bridges);
	return 0;
}

static int compare_gpus(const void *a, const void *b)
{
	const struct sim_gpu *x = a, *y = b;

	if (x->domain != y->domain)
		return x->domain < y->domain ? -1 : 1;
	if (x->bus != y->bus)
		return x->bus < y->bus ? -1 : 1;
	return x->device < y->device ? -1 : x->device > y->device;
}

/* Each GPU is in a root port of its own host bridge, unless the page specifies its place. */
static const char *default_bridges(struct graft_arena *arena, const struct sim_gpu *gpu)
{
	uint32_t root = gpu->bus - 1;

	if (gpu->bus == 0)
		return graft_arena_printf(arena, "pci%04x:00", gpu->domain);
	return graft_arena_printf(arena, "pci%04x:%02x/%04x:%02x:01.0", gpu->domain, root, gpu->domain, root);
}

/*
 * After sorting, a GPU without UUID or minor gets one from its index; duplicates are errors. Machines
 * with several GPUs have two NUMA nodes with half of them each.
 */
static int finish_gpus(const struct sim_yaml *yaml, struct sim_topology *topology)
{
	if (topology->n_gpus > 1)
		qsort(topology->gpus, topology->n_gpus, sizeof(*topology->gpus), compare_gpus);
	for (size_t i = 0; i < topology->n_gpus; i++) {
		struct sim_gpu *gpu = &topology->gpus[i];

		if (gpu->minor == UINT32_MAX)
			gpu->minor = (uint32_t)i;
		if (!gpu->uuid)
			gpu->uuid = sim_uuid(topology->arena, "GPU-", topology->name, "gpu", i);
		if (gpu->numa_node == UINT32_MAX)
			gpu->numa_node = topology->n_gpus > 1 && i >= topology->n_gpus / 2;
		if (!gpu->bridges)
			gpu->bridges = default_bridges(topology->arena, gpu);
		if (!gpu->bridges)
			return graft_fail_memory(yaml->err);
		if (gpu->domain == 0 && gpu->device == 0 && gpu->bus >= SIM_NVSWITCH_FIRST_BUS &&
		    gpu->bus < SIM_NVSWITCH_FIRST_BUS + topology->nvswitches)
			return sim_yaml_fail(yaml, NULL, "a GPU and an NVSwitch at bus id 0000:%02x:00.0", gpu->bus);
		for (size_t k = 0; k < i; k++) {
			if (compare_gpus(gpu, &topology->gpus[k]) == 0)
				return sim_yaml_fail(yaml, NULL, "two GPUs at bus id %04x:%02x:%02x.0", gpu->domain,
						     gpu->bus, gpu->device);
			if (gpu->minor == topology->gpus[k].minor)
				return sim_yaml_fail(yaml, NULL, "two GPUs with minor %u", gpu->minor);
			if (!sim_hardware_bridges_agree(gpu->bridges, topology->gpus[k].bridges))
				return sim_yaml_fail(yaml, NULL, "a bridge is at two places: '%s' and '%s'",
						     topology->gpus[k].bridges, gpu->bridges);
		}
	}
	return 0;
}

static const char *mig_uuid(struct sim_topology *topology, const struct sim_gpu *gpu, const struct sim_mig *mig)
{
	/* Until 465 the name was derived from the GPU's UUID; since then it is independent. */
	if (topology->driver_major < 465)
		return graft_arena_printf(topology->arena, "MIG-%s/%u/%u", gpu->uuid, mig->gi, mig->ci);
	return sim_uuid(topology->arena, "MIG-", topology->name, gpu->uuid, mig->gi * 8 + mig->ci);
}

static int add_mig(const struct sim_yaml *yaml, struct sim_topology *topology, struct sim_gpu *gpu,
		   const yaml_node_t *node, const struct sim_mig *mig)
{
	struct sim_mig *added;

	if (gpu->n_mig == SIM_MAX_MIG)
		return sim_yaml_fail(yaml, node, "more than %u MIG devices on one GPU", SIM_MAX_MIG);
	added = graft_arena_push(topology->arena, &gpu->mig, &gpu->n_mig, sizeof(*added));
	if (!added)
		return graft_fail_memory(yaml->err);
	*added = *mig;
	added->gi_minor = sim_mig_minor(gpu->minor, mig->gi, -1);
	added->ci_minor = sim_mig_minor(gpu->minor, mig->gi, (int)mig->ci);
	added->uuid = mig_uuid(topology, gpu, mig);
	return added->uuid && added->name ? 0 : graft_fail_memory(yaml->err);
}

/* "3g.20gb" is one compute instance that fills its GPU instance; "3g.20gb/1c/2c" splits it. */
static int add_mig_instance(const struct sim_yaml *yaml, struct sim_topology *topology, struct sim_gpu *gpu,
			    const yaml_node_t *node, uint32_t gi, const struct sim_mig_profile *profile, char *text)
{
	struct sim_mig mig = { .gi = gi, .gi_slices = profile->slices, .memory_mib = profile->memory_mib };
	char *split = strchr(text, '/');
	uint32_t used = 0;

	if (split)
		*split = '\0';
	mig.profile = mig.name = text;
	mig.ci_slices = profile->slices;
	mig.multiprocessors = profile->multiprocessors;
	if (!split)
		return add_mig(yaml, topology, gpu, node, &mig);
	for (char *part = split + 1, *next; part; part = next, mig.ci++) {
		next = strchr(part, '/');
		if (next)
			*next++ = '\0';
		if (part[0] < '1' || part[0] > '7' || strcmp(part + 1, "c") != 0)
			return sim_yaml_fail(yaml, node, "'%s' is not a size of a compute instance, such as 1c", part);
		mig.ci_slices = (uint32_t)(part[0] - '0');
		used += mig.ci_slices;
		if (used > profile->slices)
			return sim_yaml_fail(yaml, node, "the compute instances do not fit into %s", text);
		if (mig.ci_slices < profile->slices)
			mig.multiprocessors = profile->slice_multiprocessors * mig.ci_slices;
		mig.name = graft_arena_printf(topology->arena, "%s.%s", part, text);
		if (add_mig(yaml, topology, gpu, node, &mig) < 0)
			return -1;
	}
	return 0;
}

static int split_gpu(const struct sim_yaml *yaml, struct sim_topology *topology, struct sim_gpu *gpu,
		     const struct group *group)
{
	uint32_t slices, memory_slices, taken[16] = { 0 };

	if (group->model->mig_profiles[0] == '\0')
		return sim_yaml_fail(yaml, group->node, "%s has no MIG", group->model->key);
	sim_mig_capacity(group->model, &slices, &memory_slices);
	for (size_t i = 0; i < group->n_mig; i++) {
		const char *scalar = sim_yaml_scalar(yaml, group->mig[i]);
		char *text = scalar ? graft_arena_strdup(topology->arena, scalar) : NULL;
		struct sim_mig_profile profile;
		char *name = text ? graft_arena_strndup(topology->arena, text, strcspn(text, "/")) : NULL;
		uint32_t gi;

		if (!scalar)
			return -1;
		if (!name)
			return graft_fail_memory(yaml->err);
		if (!sim_mig_profile(group->model, name, &profile))
			return sim_yaml_fail(yaml, group->mig[i], "%s has no MIG profile '%s' (it has: %s)",
					     group->model->key, name, group->model->mig_profiles);
		if (profile.slices > slices || profile.memory_slices > memory_slices)
			return sim_yaml_fail(yaml, group->mig[i], "'%s' no longer fits on the GPU", name);
		slices -= profile.slices;
		memory_slices -= profile.memory_slices;
		for (gi = profile.first_id; gi < 15 && taken[gi]; gi++)
			;
		taken[gi] = 1;
		if (add_mig_instance(yaml, topology, gpu, group->mig[i], gi, &profile, text) < 0)
			return -1;
	}
	return 0;
}

static int compare_mig(const void *a, const void *b)
{
	const struct sim_mig *x = a, *y = b;

	return x->gi != y->gi ? (x->gi < y->gi ? -1 : 1) : (x->ci < y->ci ? -1 : x->ci > y->ci);
}

static int finish_mig(const struct sim_yaml *yaml, struct sim_topology *topology)
{
	for (size_t i = 0; i < topology->n_gpus; i++) {
		struct sim_gpu *gpu = &topology->gpus[i];

		if (!gpu->mig_enabled)
			continue;
		if (split_gpu(yaml, topology, gpu, gpu->group) < 0)
			return -1;
		if (gpu->n_mig > 1)
			qsort(gpu->mig, gpu->n_mig, sizeof(*gpu->mig), compare_mig);
	}
	return 0;
}

static int finish_groups(const struct sim_yaml *yaml, struct draft *draft)
{
	for (size_t g = 0; g < draft->n_groups; g++) {
		const struct group *group = &draft->groups[g];

		if (group->count == 0 || group->count > SIM_MAX_GPUS)
			return sim_yaml_fail(yaml, group->node, "'count' is from 1 to %u", SIM_MAX_GPUS);
		for (uint32_t place = 0; place < group->count; place++) {
			if (add_gpu(yaml, draft, group, place) < 0)
				return -1;
		}
	}
	if (finish_gpus(yaml, draft->topology) < 0)
		return -1;
	return finish_mig(yaml, draft->topology);
}

/* Takes a number of one or two digits from the beginning of *text. */
static bool take_number(const char **text, unsigned int *ret_number)
{
	size_t length = strspn(*text, "0123456789");

	if (length == 0 || length > 2)
		return false;
	*ret_number = (unsigned int)strtoul(*text, NULL, 10);
	*text += length;
	return true;
}

static bool take_character(const char **text, char c)
{
	bool there = **text == c;

	*text += there;
	return there;
}

static bool parse_nvlink(const char *text, struct sim_nvlink *link)
{
	link->count = 1;
	return take_number(&text, &link->a) && take_character(&text, '-') && take_number(&text, &link->b) &&
	       (!take_character(&text, ':') || take_number(&text, &link->count)) && *text == '\0';
}

/* "0-3:2": two NVLinks between the GPUs 0 and 3 */
static int add_nvlink(const struct sim_yaml *yaml, const yaml_node_t *node, void *arg)
{
	struct sim_topology *topology = arg;
	const char *text = sim_yaml_scalar(yaml, node);
	struct sim_nvlink link, *added;

	if (!text)
		return -1;
	if (!parse_nvlink(text, &link) || link.a == link.b || link.a >= topology->n_gpus ||
	    link.b >= topology->n_gpus || link.count == 0)
		return sim_yaml_fail(yaml, node, "'%s' does not name NVLinks between two GPUs, such as 0-3:2", text);
	added = graft_arena_push(topology->arena, &topology->nvlinks, &topology->n_nvlinks, sizeof(*added));
	if (!added)
		return graft_fail_memory(yaml->err);
	*added = link;
	if (sim_hardware_used_links(topology, link.a) > sim_hardware_max_links(topology->gpus[link.a].model) ||
	    sim_hardware_used_links(topology, link.b) > sim_hardware_max_links(topology->gpus[link.b].model))
		return sim_yaml_fail(yaml, node, "'%s': one of these GPUs has fewer NVLinks", text);
	return 0;
}

static int add_topology_fault(const struct sim_yaml *yaml, const yaml_node_t *node, void *arg)
{
	const char *text = sim_yaml_scalar(yaml, node);
	struct graft_error inner = { .status = GRAFT_OK };

	if (!text)
		return -1;
	if (sim_topology_add_fault(arg, text, &inner) < 0)
		return sim_yaml_fail(yaml, node, "%s", inner.msg);
	return 0;
}

static int finish_limits(const struct sim_yaml *yaml, const struct sim_topology *topology)
{
	const uint32_t majors[] = { topology->majors.uvm,      topology->majors.caps, topology->majors.imex,
				    topology->majors.nvswitch, topology->majors.fs,   topology->majors.gdrdrv };

	if (topology->nvswitches > 16 || topology->imex_channels > 2048)
		return sim_yaml_fail(yaml, NULL, "at most 16 NVSwitches and 2048 IMEX channels");
	for (size_t i = 0; i < GRAFT_COUNT(majors); i++) {
		if (majors[i] - 1 >= 511)
			return sim_yaml_fail(yaml, NULL, "majors are from 1 to 511");
	}
	if (strlen(topology->name) >= 64 || strchr(topology->name, '/'))
		return sim_yaml_fail(yaml, NULL, "'name' has at most 63 characters and no slash");
	return 0;
}

/* "dir/dgx-h100.yaml" -> "dgx-h100" */
static const char *name_of_file(struct graft_arena *arena, const char *file)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file, *dot = strrchr(base, '.');

	return graft_arena_strndup(arena, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

static int read_document(const struct sim_yaml *yaml, struct sim_topology *topology)
{
	const yaml_node_t *root = yaml_document_get_root_node(yaml->document);
	struct draft draft = { .topology = topology };

	if (!root)
		return sim_yaml_fail(yaml, NULL, "the file is empty");
	if (read_root(yaml, root, &draft) < 0)
		return -1;
	if (!topology->name)
		topology->name = name_of_file(topology->arena, yaml->file);
	if (!topology->name)
		return graft_fail_memory(yaml->err);
	if (topology->nvswitches > 0)
		topology->files |= SIM_FILES_FABRIC;
	if (finish_limits(yaml, topology) < 0 || finish_versions(yaml, &draft) < 0 || finish_groups(yaml, &draft) < 0)
		return -1;
	if (draft.nvlinks && topology->nvswitches > 0)
		return sim_yaml_fail(yaml, draft.nvlinks, "NVSwitches connect the GPUs already");
	if (draft.nvlinks &&
	    sim_yaml_sequence(yaml, draft.nvlinks, (size_t)SIM_MAX_GPUS * SIM_MAX_LINKS, add_nvlink, topology) < 0)
		return -1;
	if (draft.faults && sim_yaml_sequence(yaml, draft.faults, 64, add_topology_fault, topology) < 0)
		return -1;
	return graft_arena_failed(topology->arena) ? graft_fail_memory(yaml->err) : 0;
}

static struct sim_topology *topology_new(void)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct sim_topology *topology = arena ? graft_arena_alloc(arena, sizeof(*topology)) : NULL;

	if (!topology) {
		(void)graft_arena_free(arena);
		return NULL;
	}
	*topology = (struct sim_topology){
		.arena = arena,
		.machine = sim_machine_native(),
		.files = SIM_FILES_BASE,
		.uuids_in_procfs = true,
		.majors = { .uvm = 505, .caps = 507, .imex = 506, .nvswitch = 504, .fs = 503, .gdrdrv = 502 },
	};
	return topology;
}

int sim_topology_read(const void *bytes, size_t length, const char *file, struct sim_topology **ret_topology,
		      struct graft_error *err)
{
	struct sim_topology *topology = topology_new();
	yaml_document_t document;
	struct sim_yaml yaml = { .document = &document, .file = file, .err = err };
	int rc;

	if (!topology)
		return graft_fail_memory(err);
	yaml.arena = topology->arena;
	rc = sim_yaml_load(bytes, length, file, &document, err);
	if (rc == 0) {
		rc = read_document(&yaml, topology);
		yaml_document_delete(&document);
	}
	if (rc < 0) {
		(void)sim_topology_free(topology);
		return -1;
	}
	*ret_topology = topology;
	return 0;
}

struct sim_topology *sim_topology_free(struct sim_topology *topology)
{
	if (topology)
		(void)graft_arena_free(topology->arena);
	return NULL;
}

/* --- data for the libraries --- */

__attribute__((format(printf, 3, 4))) static void put(char *field, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(field, size, format, args);
	va_end(args);
}
#define PUT(field, ...) put(field, sizeof(field), __VA_ARGS__)

void sim_vbios(const struct sim_topology *topology, const struct sim_gpu *gpu, char *out, size_t size)
{
	/*
	 * The first numbers depend on the chip. Source: VBIOS versions in published outputs of
	 * nvidia-smi.
	 */
	static const char *const families[] = {
		[SIM_ARCH_PASCAL] = "86.02",    [SIM_ARCH_VOLTA] = "88.00", [SIM_ARCH_TURING] = "90.04",
		[SIM_ARCH_AMPERE] = "94.02",    [SIM_ARCH_ADA] = "95.04",   [SIM_ARCH_HOPPER] = "96.00",
		[SIM_ARCH_BLACKWELL] = "97.00",
	};
	const struct sim_model *model = gpu->model;
	bool ga100 = model->arch == SIM_ARCH_AMPERE && model->cc_minor == 0;
	uint64_t hash = sim_hash(topology->name, "vbios", gpu->bus);

	(void)snprintf(out, size, "%s.89.00.%02X", ga100 ? "92.00" : families[model->arch], (unsigned int)(hash & 0xf));
}

static void mig_data(const struct sim_mig *mig, struct sim_data_mig *out)
{
	PUT(out->uuid, "%s", mig->uuid);
	PUT(out->profile, "%s", mig->name);
	out->gi = mig->gi;
	out->ci = mig->ci;
	out->gi_minor = mig->gi_minor;
	out->ci_minor = mig->ci_minor;
	out->gi_slices = mig->gi_slices;
	out->ci_slices = mig->ci_slices;
	out->multiprocessors = mig->multiprocessors;
	out->memory = (uint64_t)mig->memory_mib << 20;
}

static void gpu_data(const struct sim_topology *topology, const struct sim_gpu *gpu, struct sim_data_gpu *out)
{
	const struct sim_model *model = gpu->model;
	uint64_t hash = sim_hash(topology->name, "serial", (uint64_t)gpu->domain << 8 | gpu->bus);

	PUT(out->name, "%s", gpu->name);
	PUT(out->uuid, "%s", gpu->uuid);
	PUT(out->serial, "1%012llu", (unsigned long long)(hash % 1000000000000u));
	sim_vbios(topology, gpu, out->vbios, sizeof(out->vbios));
	out->domain = gpu->domain;
	out->bus = gpu->bus;
	out->device = gpu->device;
	out->minor = gpu->minor;
	out->pci_id = (uint32_t)model->pci_device << 16 | 0x10deu;
	out->pci_subsystem_id = (uint32_t)model->pci_subsystem << 16 | 0x10deu;
	out->cc_major = model->cc_major;
	out->cc_minor = model->cc_minor;
	out->brand = (uint32_t)sim_model_brand(model, topology->driver_major);
	out->arch = (uint32_t)model->arch;
	out->multiprocessors = model->multiprocessors;
	out->power_watts = model->power_watts;
	out->mig_capable = model->mig_profiles[0] != '\0';
	out->mig_enabled = gpu->mig_enabled;
	out->lost = gpu->lost;
	out->display = model->brand == SIM_BRAND_GEFORCE;
	out->coherent = sim_model_is_coherent(model);
	out->memory = (uint64_t)model->memory_mib << 20;
	out->n_mig = (uint32_t)gpu->n_mig;
	for (size_t i = 0; i < gpu->n_mig; i++)
		mig_data(&gpu->mig[i], &out->mig[i]);
	sim_hardware_mig(gpu, out);
	sim_hardware_links(topology, gpu, out);
	sim_hardware_distances(topology, gpu, out);
	out->numa_node = gpu->numa_node;
}

void sim_topology_data(const struct sim_topology *topology, struct sim_data *ret_data)
{
	memset(ret_data, 0, sizeof(*ret_data));
	PUT(ret_data->magic, "%s", SIM_MAGIC);
	PUT(ret_data->driver_version, "%s", topology->driver ? topology->driver : "");
	PUT(ret_data->module_version, "%s", topology->module ? topology->module : "");
	ret_data->cuda = topology->cuda_number;
	ret_data->wsl = topology->layout == SIM_LAYOUT_WSL2;
	ret_data->no_nodes = topology->layout == SIM_LAYOUT_TEGRA;
	ret_data->init_delay_ms = topology->faults.init_delay_ms;
	ret_data->init_fail = topology->faults.init_fail;
	ret_data->init_crash = topology->faults.crash;
	ret_data->firmware = topology->firmware;
	sim_hardware_fabric(topology, ret_data);
	for (size_t i = 0; i < topology->n_gpus; i++) {
		if (!topology->gpus[i].excluded)
			gpu_data(topology, &topology->gpus[i], &ret_data->gpus[ret_data->n_gpus++]);
	}
}
