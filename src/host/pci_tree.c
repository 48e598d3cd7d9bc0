/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pci_tree: reads the places of GPUs from sysfs. On a machine that does not show its PCI tree, such
 * as WSL2, they are unknown.
 */
#include "host/pci_tree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/root.h"
#include "base/strings.h"
#include "formats/procfs.h"

#define PCI_DEVICES    "/sys/bus/pci/devices"
#define DEVICES        "/sys/devices/"
#define ATTRIBUTE_MAX  ((size_t)4096)
#define PCI_DEVICE_MAX 4096u

static const struct graft_field place_fields[] = {
	GRAFT_F_STRING(struct graft_pci_place, bus_id, true, "of the GPU"),
	GRAFT_F_BOOL(struct graft_pci_place, has_numa_node, "its NUMA node is known"),
	GRAFT_F_U32(struct graft_pci_place, numa_node, false, "its NUMA node"),
	GRAFT_F_U32(struct graft_pci_place, class_, false, "class of PCI"),
	GRAFT_F_STRINGS(struct graft_pci_place, bridges, "from the host bridge down to the one above the GPU"),
	GRAFT_F_RECORDS(struct graft_pci_place, links, &graft_nvml_link_record, "NVLinks to other GPUs"),
};
const struct graft_record graft_pci_place_record = { "place", sizeof(struct graft_pci_place), place_fields,
						     GRAFT_COUNT(place_fields) };

/* Reads an attribute of a PCI device; "" if there is none. NULL: out of memory. */
static const char *read_attribute(const struct graft_root *root, const char *device, const char *name,
				  struct graft_arena *arena)
{
	const char *path = graft_arena_printf(arena, PCI_DEVICES "/%s/%s", device, name), *text;
	size_t length;

	if (!path)
		return NULL;
	if (graft_root_read(root, path, ATTRIBUTE_MAX, arena, &text, &length) < 0)
		return graft_arena_failed(arena) ? NULL : "";
	return text;
}

/* Splits "/sys/devices/pci0000:16/0000:16:01.0/0000:1b:00.0" into the names of the bridges. */
static void read_bridges(const char *path, struct graft_arena *arena, struct graft_pci_place *place)
{
	if (!graft_starts_with(path, DEVICES))
		return;
	path += strlen(DEVICES);
	for (const char *slash = strchr(path, '/'); slash; path = slash + 1, slash = strchr(path, '/')) {
		const char *name = graft_arena_strndup(arena, path, (size_t)(slash - path));

		if (!name || !graft_arena_push_string(arena, &place->bridges, &place->n_bridges, name))
			return;
	}
}

static int read_place(const struct graft_root *root, const struct graft_gpu *gpu, struct graft_arena *arena,
		      struct graft_pci_place *place, struct graft_error *err)
{
	const char *device, *place_path, *path, *text;
	unsigned long node;
	char *end;

	place->bus_id = graft_arena_strdup(arena, gpu->bus_id ? gpu->bus_id : "");
	device = gpu->bus_id ? graft_pci_sysfs_name(gpu->bus_id, arena) : NULL;
	if (!device)
		return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
	place_path = graft_arena_printf(arena, PCI_DEVICES "/%s", device);
	text = read_attribute(root, device, "numa_node", arena);
	if (!text || !place_path || !place->bus_id)
		return graft_fail_memory(err);
	node = strtoul(text, &end, 10);
	/* The kernel writes -1 if the firmware does not specify the node. */
	if (end != text && text[0] != '-' && node <= UINT32_MAX) {
		place->has_numa_node = true;
		place->numa_node = (uint32_t)node;
	}
	text = read_attribute(root, device, "class", arena);
	if (!text)
		return graft_fail_memory(err);
	place->class_ = (uint32_t)strtoul(text, NULL, 16);
	if (graft_root_resolve(root, place_path, arena, &path, NULL) == 0)
		read_bridges(path, arena, place);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* NVSwitches are bridges (class 0x0680) made by NVIDIA. */
static int count_nvswitches(const struct graft_root *root, struct graft_arena *arena, uint32_t *ret_n,
			    struct graft_error *err)
{
	const char **names = NULL;
	size_t n = 0;

	(void)graft_root_list(root, PCI_DEVICES, PCI_DEVICE_MAX, arena, &names, &n, NULL);
	for (size_t i = 0; i < n; i++) {
		const char *vendor = read_attribute(root, names[i], "vendor", arena), *class_;

		if (!vendor)
			return graft_fail_memory(err);
		if (!graft_starts_with(vendor, "0x10de"))
			continue;
		class_ = read_attribute(root, names[i], "class", arena);
		if (!class_)
			return graft_fail_memory(err);
		*ret_n += graft_starts_with(class_, "0x0680");
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

int graft_pci_tree_read(const char *host_root, const struct graft_inventory *inventory, struct graft_arena *arena,
			struct graft_pci_tree *ret_tree, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;

	*ret_tree = (struct graft_pci_tree){ .n_gpus = inventory->n_gpus };
	ret_tree->gpus = graft_arena_list(arena, inventory->n_gpus, sizeof(*ret_tree->gpus));
	if (inventory->n_gpus > 0 && !ret_tree->gpus)
		return graft_fail_memory(err);
	if (graft_root_open(&root, host_root, err) < 0)
		return -1;
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (read_place(&root, &inventory->gpus[i], arena, &ret_tree->gpus[i], err) < 0)
			return -1;
	}
	return count_nvswitches(&root, arena, &ret_tree->n_nvswitches, err);
}

static struct graft_pci_place *find_tree_place(struct graft_pci_tree *tree, const char *bus_id)
{
	for (size_t i = 0; bus_id && i < tree->n_gpus; i++) {
		if (strcmp(tree->gpus[i].bus_id, bus_id) == 0)
			return &tree->gpus[i];
	}
	return NULL;
}

int graft_pci_tree_add_links(struct graft_pci_tree *tree, const struct graft_nvml_snapshot *snapshot,
			     struct graft_arena *arena, struct graft_error *err)
{
	for (size_t i = 0; i < snapshot->n_gpus; i++) {
		const struct graft_nvml_gpu *gpu = &snapshot->gpus[i];
		struct graft_pci_place *place = find_tree_place(tree, gpu->bus_id);

		for (size_t k = 0; place && k < gpu->n_links; k++) {
			const struct graft_pci_place *other = find_tree_place(tree, gpu->links[k].bus_id);
			struct graft_nvml_link *found;

			if (!other || other == place)
				continue;
			found = graft_arena_push(arena, &place->links, &place->n_links, sizeof(*found));
			if (!found)
				return graft_fail_memory(err);
			*found = gpu->links[k];
		}
	}
	return 0;
}

static uint32_t count_links(const struct graft_pci_place *from, const struct graft_pci_place *to)
{
	for (size_t i = 0; i < from->n_links; i++) {
		if (strcmp(from->links[i].bus_id, to->bus_id) == 0)
			return from->links[i].count;
	}
	return 0;
}

uint32_t graft_pci_tree_links(const struct graft_pci_place *a, const struct graft_pci_place *b)
{
	uint32_t there = count_links(a, b), back = count_links(b, a);

	return there > back ? there : back;
}
