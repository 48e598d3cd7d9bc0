/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_labels: first the labels of the node, then those of its GPUs and, depending on the strategy,
 * of its MIG devices instead of GPUs or in addition. A later label replaces an earlier one of the
 * same name.
 */
#include "kubernetes/kube_labels.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "kubernetes/kube_tables.h"

#define VALUE_MAX     63 /* Kubernetes' */
#define PCI_DISPLAY   0x0300u
#define PCI_COMPUTE   0x0302u
#define UNKNOWN_VALUE "unknown"

struct labelling {
	const struct graft_kube_config *config;
	const struct graft_kube_label_facts *facts;
	const struct graft_log *log;
	struct graft_arena *arena;
	struct graft_kube_labels *labels;
	const struct graft_kube_replication *replication;
	enum graft_kube_sharing_strategy sharing;
};

/* A GPU or MIG device to be labelled, and the rule by which it is shared. */
struct labelled {
	const struct graft_gpu *gpu;
	const struct graft_mig_device *mig; /* NULL: the GPU as a whole */
	const char *product;
	const struct graft_kube_shared_resource *rule;
};

/* Devices of one resource and one product. */
struct labelled_group {
	const char *resource;
	const char *product;
	struct labelled *items;
	size_t n_items;
};

/* --- labels --- */

/*
 * Returns the value in the form that Kubernetes accepts: runs of blanks become a dash, other
 * invalid characters are dropped.
 */
static const char *clean_value(const char *value, struct graft_arena *arena)
{
	char *clean = graft_arena_strdup(arena, value);
	size_t n = 0;

	if (!clean)
		return NULL;
	for (const char *at = value; *at != '\0'; at++) {
		bool blank = *at == ' ' || *at == '\t' || *at == '\n' || *at == '\r';

		if (blank && n > 0 && clean[n - 1] != ' ')
			clean[n++] = ' ';
		else if ((unsigned char)*at < 0x80 && (isalnum((unsigned char)*at) || strchr("-_.", *at)))
			clean[n++] = *at;
	}
	for (size_t i = 0; i < n; i++) {
		if (clean[i] == ' ')
			clean[i] = '-';
	}
	n = n > VALUE_MAX ? VALUE_MAX : n;
	while (n > 0 && !isalnum((unsigned char)clean[n - 1]))
		n--;
	clean[n] = '\0';
	return clean + strspn(clean, "-_.");
}

/* Sets a label; `name` follows the prefix. The arena records failures. */
static void add_kube_label(struct labelling *labelling, const char *name, const char *value)
{
	struct graft_kube_labels *labels = labelling->labels;
	const char *clean = clean_value(value, labelling->arena);
	struct graft_kube_label *slot = NULL;

	for (size_t i = 0; i < labels->n_items && !slot; i++) {
		if (strcmp(labels->items[i].name + strlen(GRAFT_KUBE_PREFIX), name) == 0)
			slot = &labels->items[i];
	}
	if (!slot) {
		const char *full = graft_arena_printf(labelling->arena, GRAFT_KUBE_PREFIX "%s", name);

		slot = full ? graft_arena_push(labelling->arena, &labels->items, &labels->n_items, sizeof(*slot))
			    : NULL;
		if (!slot)
			return;
		slot->name = full;
	}
	slot->value = clean ? clean : "";
}

__attribute__((format(printf, 3, 4))) static void add_formatted(struct labelling *labelling, const char *name,
								const char *format, ...)
{
	char value[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	add_kube_label(labelling, name, value);
}

/* The same for a label of a resource: "gpu" and "count" make "gpu.count". */
static void add_of(struct labelling *labelling, const char *resource, const char *name, const char *value)
{
	const char *full = graft_arena_printf(labelling->arena, "%s.%s", resource, name);

	if (full)
		add_kube_label(labelling, full, value);
}

static void add_number(struct labelling *labelling, const char *resource, const char *name, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	add_of(labelling, resource, name, text);
}

/* --- the node --- */

/* "550.54.14"; old drivers have two parts. */
static void add_driver_version(struct labelling *labelling)
{
	const char *version = labelling->facts->inventory->driver_version.value;
	static const char *const names[][2] = { { "cuda.driver.major", "cuda.driver-version.major" },
						{ "cuda.driver.minor", "cuda.driver-version.minor" },
						{ "cuda.driver.rev", "cuda.driver-version.revision" } };

	if (!version)
		return;
	add_kube_label(labelling, "cuda.driver-version.full", version);
	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		size_t length = strcspn(version, ".");

		for (size_t j = 0; j < 2; j++)
			add_formatted(labelling, names[i][j], "%.*s", (int)length, version);
		version += length + (version[length] == '.');
	}
}

/* The driver's CUDA version. One that is only bounded by the driver's version counts as unknown. */
static void add_cuda_version(struct labelling *labelling)
{
	uint32_t version = labelling->facts->kept ? labelling->facts->kept->nvml.cuda_version : 0;
	static const char *const names[] = { "cuda.runtime", "cuda.runtime-version" };

	if (version == 0)
		return;
	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		add_number(labelling, names[i], "major", version / 1000);
		add_number(labelling, names[i], "minor", version % 1000 / 10);
	}
	add_formatted(labelling, "cuda.runtime-version.full", "%" PRIu32 ".%" PRIu32, version / 1000,
		      version % 1000 / 10);
}

static const char *mode_of_gpus(const struct graft_kube_label_facts *facts)
{
	const struct graft_pci_tree *tree = facts->tree;
	uint32_t class_ = 0;

	for (size_t i = 0; tree && i < tree->n_gpus; i++) {
		uint32_t of_gpu = tree->gpus[i].class_ >> 8;

		if (i > 0 && of_gpu != class_)
			return UNKNOWN_VALUE;
		class_ = of_gpu;
	}
	return class_ == PCI_DISPLAY ? "graphics" : class_ == PCI_COMPUTE ? "compute" : UNKNOWN_VALUE;
}

/* SPEC kubernetes 8.2: only if all GPUs that are in a clique are in the same one. */
static void add_clique(struct labelling *labelling)
{
	const struct graft_kept_facts *kept = labelling->facts->kept;
	const char *clique = NULL;

	for (size_t i = 0; kept && i < kept->nvml.n_gpus; i++) {
		const char *other = kept->nvml.gpus[i].clique;

		if (clique && other && strcmp(clique, other) != 0) {
			graft_warn(labelling->log,
				   "omitting the clique label: the GPUs are in several cliques, %s and %s", clique,
				   other);
			return;
		}
		clique = clique ? clique : other;
	}
	if (clique)
		add_kube_label(labelling, "gpu.clique", clique);
}

static void add_vgpu(struct labelling *labelling)
{
	const struct graft_kept_facts *kept = labelling->facts->kept;
	bool present = kept && kept->n_vgpus > 0;

	add_kube_label(labelling, "vgpu.present", present ? "true" : "false");
	if (!present)
		return;
	add_kube_label(labelling, "vgpu.host-driver-version",
		       kept->vgpus[0].host_driver_version ? kept->vgpus[0].host_driver_version : "");
	add_kube_label(labelling, "vgpu.host-driver-branch",
		       kept->vgpus[0].host_driver_branch ? kept->vgpus[0].host_driver_branch : "");
}

static int label_mps(struct labelling *labelling, struct graft_error *err)
{
	const struct graft_inventory *inventory = labelling->facts->inventory;

	for (size_t i = 0; labelling->sharing == GRAFT_KUBE_MPS && i < inventory->n_gpus; i++) {
		if (inventory->gpus[i].mig_enabled && !inventory->gpus[i].excluded)
			return graft_fail(err, GRAFT_INVALID, 0,
					  "MPS is configured, but GPU %" PRIu32
					  " is in MIG mode: MPS shares whole GPUs",
					  inventory->gpus[i].index);
	}
	add_kube_label(labelling, "mps.capable", labelling->sharing == GRAFT_KUBE_MPS ? "true" : "false");
	return 0;
}

static int label_node(struct labelling *labelling, struct graft_error *err)
{
	const struct graft_kube_label_facts *facts = labelling->facts;
	bool mig_capable = false;

	for (size_t i = 0; i < facts->inventory->n_gpus; i++)
		mig_capable |= facts->inventory->gpus[i].mig_capable && !facts->inventory->gpus[i].excluded;
	if (facts->timestamp > 0)
		add_formatted(labelling, "gfd.timestamp", "%" PRId64, facts->timestamp);
	add_kube_label(labelling, "gpu.machine", facts->machine_type ? facts->machine_type : UNKNOWN_VALUE);
	add_driver_version(labelling);
	add_cuda_version(labelling);
	add_kube_label(labelling, "mig.capable", mig_capable ? "true" : "false");
	if (labelling->config->flags.mig_strategy != GRAFT_KUBE_MIG_NONE)
		add_kube_label(labelling, "mig.strategy",
			       graft_kube_mig_strategies[labelling->config->flags.mig_strategy]);
	add_vgpu(labelling);
	add_clique(labelling);
	return label_mps(labelling, err);
}

/* --- sharing --- */

struct group_sharing {
	uint32_t replicas;
	bool suffix; /* the product's name shows that it is shared */
	enum graft_kube_sharing_strategy strategy;
};

static bool is_renamed(const struct labelling *labelling, const struct graft_kube_shared_resource *rule)
{
	return labelling->replication->rename_by_default || rule->rename[0] != '\0';
}

/*
 * How the devices of a resource are shared. Shared devices that are offered as another resource
 * count only if the resource has no others.
 */
static struct group_sharing find_group_sharing(const struct labelling *labelling, const struct labelled_group *group)
{
	const struct graft_kube_shared_resource *rule = NULL;
	size_t n_shared = 0;

	for (size_t i = 0; i < group->n_items; i++) {
		const struct graft_kube_shared_resource *of_item = group->items[i].rule;

		n_shared += of_item != NULL;
		if (of_item && (!rule || (is_renamed(labelling, rule) && !is_renamed(labelling, of_item))))
			rule = of_item;
	}
	if (!rule || (n_shared < group->n_items && is_renamed(labelling, rule)))
		return (struct group_sharing){ .replicas = 1 };
	return (struct group_sharing){ .replicas = rule->replicas,
				       .suffix = !is_renamed(labelling, rule),
				       .strategy = labelling->sharing };
}

static void add_sharing(struct labelling *labelling, const char *resource, const char *product, size_t count,
			const struct group_sharing *sharing)
{
	add_of(labelling, resource, "product",
	       graft_arena_printf(labelling->arena, "%s%s", product, sharing->suffix ? "-SHARED" : ""));
	add_number(labelling, resource, "count", count);
	add_number(labelling, resource, "replicas", sharing->replicas);
	add_of(labelling, resource, "sharing-strategy", graft_kube_sharing_strategies[sharing->strategy]);
}

/* If only some devices are shared under another name, that resource has labels of its own. */
static void label_renamed(struct labelling *labelling, const struct labelled_group *group)
{
	for (size_t i = 0; i < group->n_items; i++) {
		const struct graft_kube_shared_resource *rule = group->items[i].rule;
		const struct group_sharing sharing = { .replicas = rule ? rule->replicas : 0,
						       .strategy = labelling->sharing };
		const char *name;
		size_t n = 0;

		if (!rule || !is_renamed(labelling, rule))
			continue;
		for (size_t j = 0; j < group->n_items; j++)
			n += group->items[j].rule == rule;
		name = kube_name_shared(labelling->replication, rule, labelling->arena);
		if (name && n < group->n_items)
			add_sharing(labelling, name + strlen(GRAFT_KUBE_PREFIX), group->product, n, &sharing);
	}
}

/* --- GPUs --- */

static const struct graft_nvml_gpu *find_kept_gpu(const struct labelling *labelling, const struct graft_gpu *gpu)
{
	const struct graft_kept_facts *kept = labelling->facts->kept;

	for (size_t i = 0; kept && i < kept->nvml.n_gpus; i++) {
		const struct graft_nvml_gpu *theirs = &kept->nvml.gpus[i];

		if (theirs->bus_id && gpu->bus_id && strcmp(theirs->bus_id, gpu->bus_id) == 0)
			return theirs;
	}
	return NULL;
}

static const struct graft_nvml_mig *find_kept_mig(const struct labelling *labelling, const struct labelled *item)
{
	const struct graft_nvml_gpu *gpu = find_kept_gpu(labelling, item->gpu);

	for (size_t i = 0; gpu && i < gpu->n_migs; i++) {
		if (gpu->migs[i].gi == item->mig->gi && gpu->migs[i].ci == item->mig->ci)
			return gpu->migs[i].has_size ? &gpu->migs[i] : NULL;
	}
	return NULL;
}

/*
 * SPEC kubernetes 8.2: by compute capability, newest first; the first row that is not above it
 * applies.
 */
static const char *family_of(uint32_t major, uint32_t minor)
{
	static const struct {
		uint32_t from, to;
		const char *name;
	} families[] = {
		{ 100, 199, "tesla" },   { 200, 299, "fermi" },       { 300, 399, "kepler" },
		{ 500, 599, "maxwell" }, { 600, 699, "pascal" },      { 700, 704, "volta" },
		{ 705, 799, "turing" },  { 800, 808, "ampere" },      { 809, 899, "ada-lovelace" },
		{ 900, 999, "hopper" },  { 1000, 1099, "blackwell" }, { 1200, 1299, "blackwell" },
		{ 1300, 1399, "rubin" },
	};
	uint32_t number = major < 100 && minor < 100 ? major * 100 + minor : 0;

	for (size_t i = 0; i < GRAFT_COUNT(families); i++) {
		if (number >= families[i].from && number <= families[i].to)
			return families[i].name;
	}
	return "undefined";
}

static void add_architecture(struct labelling *labelling, const struct graft_nvml_gpu *gpu)
{
	if (!gpu || !gpu->has_arch)
		return;
	add_number(labelling, "gpu.compute", "major", gpu->arch_major);
	add_number(labelling, "gpu.compute", "minor", gpu->arch_minor);
	add_kube_label(labelling, "gpu.family", family_of(gpu->arch_major, gpu->arch_minor));
}

/* Finds the rule of each device; they are in the order in which they are offered. */
static void find_rules(const struct labelling *labelling, const char *resource, struct labelled *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct labelled *item = &items[i];
		const char *id = item->mig ? item->mig->uuid.value : item->gpu->uuid.value;
		char index[32];

		if (item->mig)
			(void)snprintf(index, sizeof(index), "%" PRIu32 ":%" PRIu32, item->gpu->index,
				       item->mig->index);
		else
			(void)snprintf(index, sizeof(index), "%" PRIu32, item->gpu->index);
		items[i].rule = kube_find_sharing(labelling->replication, resource, index, id ? id : "", i);
	}
}

static void add_labelled(struct labelling *labelling, struct labelled_group *group, const struct labelled *item)
{
	struct labelled *slot = graft_arena_push(labelling->arena, &group->items, &group->n_items, sizeof(*slot));

	if (slot)
		*slot = *item;
}

/* The devices of `all` with that product. */
static struct labelled_group find_product(struct labelling *labelling, const struct labelled_group *all,
					  const char *product)
{
	struct labelled_group group = { .resource = all->resource, .product = product };

	for (size_t i = 0; i < all->n_items; i++) {
		if (strcmp(all->items[i].product, product) == 0)
			add_labelled(labelling, &group, &all->items[i]);
	}
	return group;
}

/* SPEC kubernetes 8.2: a GPU in MIG mode has no replicas; its MIG devices are shared instead. */
static void label_gpu_group(struct labelling *labelling, const struct labelled_group *group)
{
	struct group_sharing sharing = find_group_sharing(labelling, group);
	const struct graft_nvml_gpu *gpu = find_kept_gpu(labelling, group->items[0].gpu);
	bool all_mig = true;

	for (size_t i = 0; i < group->n_items; i++)
		all_mig &= group->items[i].gpu->mig_enabled;
	if (all_mig)
		sharing = (struct group_sharing){ .replicas = 0 };
	add_sharing(labelling, "gpu", group->product, group->n_items, &sharing);
	if (!all_mig)
		label_renamed(labelling, group);
	if (gpu && gpu->has_memory)
		add_number(labelling, "gpu", "memory", gpu->memory_mib);
	add_architecture(labelling, gpu);
}

/* Labels of the same name replace each other, so those of the last model remain. */
static void label_gpus(struct labelling *labelling, const struct labelled_group *gpus)
{
	const char *last = NULL;

	for (size_t i = 0; i < gpus->n_items; i++) {
		struct labelled_group group = find_product(labelling, gpus, gpus->items[i].product);

		if (group.n_items == 0 || group.items[0].gpu != gpus->items[i].gpu)
			continue;
		if (last)
			graft_warn(labelling->log, "GPUs of several models: the labels describe %s, not %s",
				   group.product, last);
		last = group.product;
		label_gpu_group(labelling, &group);
	}
	if (gpus->n_items > 0)
		add_kube_label(labelling, "gpu.mode", mode_of_gpus(labelling->facts));
}

static struct labelled_group list_gpus(struct labelling *labelling)
{
	const struct graft_inventory *inventory = labelling->facts->inventory;
	struct labelled_group gpus = { .resource = KUBE_GPU_RESOURCE };

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];
		const struct labelled item = { .gpu = gpu,
					       .product = gpu->model.value ? gpu->model.value : UNKNOWN_VALUE };

		if (!gpu->excluded)
			add_labelled(labelling, &gpus, &item);
	}
	find_rules(labelling, gpus.resource, gpus.items, gpus.n_items);
	return gpus;
}

/* --- MIG --- */

/* The product of a MIG device: "NVIDIA A100-SXM4-40GB-MIG-1g.5gb". */
static const char *name_mig_product(struct labelling *labelling, const struct graft_gpu *gpu, const char *profile)
{
	char *name = graft_arena_printf(labelling->arena, "%s-MIG-%s",
					gpu->model.value ? gpu->model.value : UNKNOWN_VALUE, profile);

	for (char *at = name; at && *at != '\0'; at++) {
		if (*at == '+')
			*at = '.';
	}
	return name ? name : "";
}

static void label_mig_group(struct labelling *labelling, const char *resource, const struct labelled_group *group)
{
	const struct group_sharing sharing = find_group_sharing(labelling, group);
	const struct graft_nvml_mig *mig = find_kept_mig(labelling, &group->items[0]);

	add_sharing(labelling, resource, group->product, group->n_items, &sharing);
	label_renamed(labelling, group);
	if (!mig) {
		graft_warn(labelling->log,
			   "omitting the labels for the size of MIG devices of %s: NVML does not report it",
			   group->product);
		return;
	}
	add_number(labelling, resource, "memory", mig->memory_mib);
	add_number(labelling, resource, "multiprocessors", mig->multiprocessors);
	add_number(labelling, resource, "slices.gi", mig->gi_slices);
	add_number(labelling, resource, "slices.ci", mig->ci_slices);
	add_number(labelling, resource, "engines.copy", mig->copy_engines);
	add_number(labelling, resource, "engines.decoder", mig->decoders);
	add_number(labelling, resource, "engines.encoder", mig->encoders);
	add_number(labelling, resource, "engines.jpeg", mig->jpeg_engines);
	add_number(labelling, resource, "engines.ofa", mig->ofa_engines);
}

/* All MIG devices with a profile, or those of one resource. */
static struct labelled_group list_migs(struct labelling *labelling, const char *resource)
{
	const struct graft_inventory *inventory = labelling->facts->inventory;
	struct labelled_group migs = { .resource = resource };

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		for (size_t j = 0; j < gpu->n_mig_devices && !gpu->excluded; j++) {
			const struct graft_mig_device *mig = &gpu->mig_devices[j];
			const char *profile = mig->profile.value;
			const char *name = profile && resource ? kube_name_mig(profile, labelling->arena) : "";

			if (profile && name && (!resource || strcmp(name, resource) == 0))
				add_labelled(
				    labelling, &migs,
				    &(struct labelled){
					.gpu = gpu, .mig = mig, .product = name_mig_product(labelling, gpu, profile) });
		}
	}
	return migs;
}

/* Returns why `single` is impossible, or NULL (SPEC kubernetes 6.3). */
static const char *find_single_fault(const struct labelled_group *gpus)
{
	const char *profile = NULL;

	for (size_t i = 0; i < gpus->n_items; i++) {
		const struct graft_gpu *gpu = gpus->items[i].gpu;

		if (!gpu->mig_enabled)
			return "some GPUs are in MIG mode, others are not";
		if (gpu->n_mig_devices == 0)
			return "a GPU in MIG mode has no MIG devices";
		for (size_t j = 0; j < gpu->n_mig_devices; j++) {
			const char *other = gpu->mig_devices[j].profile.value;

			if (!other)
				return "NVML does not report the profile of a MIG device";
			if (profile && strcmp(profile, other) != 0)
				return "MIG devices are of several kinds";
			profile = other;
		}
	}
	return NULL;
}

static void label_single(struct labelling *labelling, const struct labelled_group *gpus)
{
	struct labelled_group migs = list_migs(labelling, NULL);
	const struct graft_gpu *first = NULL;
	const char *fault;

	for (size_t i = 0; i < gpus->n_items && !first; i++)
		first = gpus->items[i].gpu->mig_enabled ? gpus->items[i].gpu : NULL;
	if (!first)
		return;
	fault = find_single_fault(gpus);
	if (fault) {
		graft_warn(labelling->log, "cannot label GPUs with --mig-strategy=single: %s", fault);
		add_kube_label(labelling, "gpu.product", name_mig_product(labelling, first, "INVALID"));
		add_kube_label(labelling, "gpu.count", "0");
		add_kube_label(labelling, "gpu.replicas", "0");
		add_kube_label(labelling, "gpu.memory", "0");
		add_kube_label(labelling, "gpu.sharing-strategy", "");
		return;
	}
	/* MIG devices of several models differ only in name. */
	migs.resource = KUBE_GPU_RESOURCE;
	find_rules(labelling, migs.resource, migs.items, migs.n_items);
	if (migs.n_items > 0) {
		migs.product = migs.items[0].product;
		label_mig_group(labelling, "gpu", &migs);
	}
}

static void label_mixed(struct labelling *labelling)
{
	struct labelled_group all = list_migs(labelling, NULL);

	for (size_t i = 0; i < all.n_items; i++) {
		const char *name = kube_name_mig(all.items[i].mig->profile.value, labelling->arena);
		struct labelled_group migs;

		if (!name)
			return;
		migs = list_migs(labelling, name);
		if (migs.n_items == 0 || migs.items[0].mig != all.items[i].mig)
			continue;
		find_rules(labelling, name, migs.items, migs.n_items);
		migs.product = migs.items[0].product;
		label_mig_group(labelling, name + strlen(GRAFT_KUBE_PREFIX), &migs);
	}
}

/* --- boards --- */

/* A board's own GPU is not in the inventory; libcuda has described it. */
static void label_board(struct labelling *labelling)
{
	const struct graft_kept_facts *kept = labelling->facts->kept;
	const struct graft_nvml_gpu *gpu = kept && kept->nvml.n_gpus > 0 ? &kept->nvml.gpus[0] : NULL;
	const struct graft_kube_shared_resource *rule = kube_find_sharing(labelling->replication, KUBE_GPU_RESOURCE,
									  "0", "tegra", 0);
	const struct group_sharing sharing = { .replicas = rule ? rule->replicas : 1,
					       .suffix = rule && !is_renamed(labelling, rule),
					       .strategy = rule ? labelling->sharing : GRAFT_KUBE_NOT_SHARED };

	add_sharing(labelling, "gpu", gpu && gpu->model ? gpu->model : UNKNOWN_VALUE, 1, &sharing);
	if (gpu && gpu->has_memory)
		add_number(labelling, "gpu", "memory", gpu->memory_mib);
	add_architecture(labelling, gpu);
}

/* --- all --- */

static int compare_labels(const void *a, const void *b)
{
	const struct graft_kube_label *left = a, *right = b;

	return strcmp(left->name, right->name);
}

void graft_kube_labels_sort(struct graft_kube_labels *labels)
{
	if (labels->n_items > 1)
		qsort(labels->items, labels->n_items, sizeof(*labels->items), compare_labels);
}

int graft_kube_labels(const struct graft_kube_config *config, const struct graft_kube_label_facts *facts,
		      const struct graft_log *log, struct graft_arena *arena, struct graft_kube_labels *ret_labels,
		      struct graft_error *err)
{
	struct labelling labelling = {
		.config = config, .facts = facts, .log = log, .arena = arena, .labels = ret_labels
	};
	struct labelled_group gpus;

	*ret_labels = (struct graft_kube_labels){ .n_items = 0 };
	labelling.replication = graft_kube_replication(config, &labelling.sharing);
	if (label_node(&labelling, err) < 0)
		return -1;
	gpus = list_gpus(&labelling);
	if (kube_is_board(config, facts->inventory))
		label_board(&labelling);
	else
		label_gpus(&labelling, &gpus);
	if (config->flags.mig_strategy == GRAFT_KUBE_MIG_SINGLE)
		label_single(&labelling, &gpus);
	if (config->flags.mig_strategy == GRAFT_KUBE_MIG_MIXED)
		label_mixed(&labelling);
	graft_kube_labels_sort(ret_labels);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

void graft_kube_labels_write(const struct graft_kube_labels *labels, struct graft_buffer *out)
{
	for (size_t i = 0; i < labels->n_items; i++)
		graft_buffer_printf(out, "%s=%s\n", labels->items[i].name, labels->items[i].value);
}
