/* SPDX-License-Identifier: Apache-2.0 */
/* driver_devices: reads procfs, sysfs and /dev as text and numbers. Opens no device. */
#include "host/driver_devices.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/strings.h"

#define FILE_MAX    ((size_t)1 << 20)
#define PCI_DEVICES "/sys/bus/pci/devices"
#define PCI_VENDOR  0x10deul
#define PCI_VGA     0x030000ul
#define PCI_3D      0x030200ul
#define PARAMS      "/proc/driver/nvidia/params"
#define MIG_MINORS  "/proc/driver/nvidia-caps/mig-minors"

/* ---- the PCI bus ---- */

static unsigned long read_pci_hex(const struct graft_root *host, const char *device, const char *name,
				  struct graft_arena *arena)
{
	const char *path = graft_arena_printf(arena, PCI_DEVICES "/%s/%s", device, name), *text;
	size_t length;

	/*
	 * Unlike `config`, these two files are answered from memory and do not wake a sleeping GPU.
	 */
	if (!path || graft_root_read(host, path, FILE_MAX, arena, &text, &length) < 0)
		return 0;
	return strtoul(text, NULL, 16);
}

static bool is_virtual_function(const struct graft_root *host, const char *device, struct graft_arena *arena)
{
	const char *path = graft_arena_printf(arena, PCI_DEVICES "/%s/physfn", device);
	struct stat st;

	return path && graft_root_stat(host, path, &st) == 0;
}

static bool is_pci_gpu(const struct graft_root *host, const char *device, struct graft_arena *arena)
{
	unsigned long class_;

	if (read_pci_hex(host, device, "vendor", arena) != PCI_VENDOR)
		return false;
	class_ = read_pci_hex(host, device, "class", arena);
	return (class_ == PCI_VGA || class_ == PCI_3D) && !is_virtual_function(host, device, arena);
}

/* ---- what the kernel reports ---- */

/* Returns whether /proc/devices has a driver of NVIDIA's: "195 nvidia", "510 nvidia-uvm". */
static bool has_nvidia_major(const char *text)
{
	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *name = line + strspn(line, " ");

		name += strspn(name, "0123456789");
		if (name[0] == ' ' && graft_starts_with(name + 1, "nvidia"))
			return true;
	}
	return false;
}

static void read_majors(const char *text, size_t length, struct graft_driver_devices *devices)
{
	devices->any = has_nvidia_major(text);
	/* Drivers before 550 use the second name. */
	devices->has_nvidia = graft_procfs_devices_major(text, length, "nvidia", &devices->nvidia_major) ||
			      graft_procfs_devices_major(text, length, "nvidia-frontend", &devices->nvidia_major);
	devices->has_uvm = graft_procfs_devices_major(text, length, "nvidia-uvm", &devices->uvm_major);
	devices->has_caps = graft_procfs_devices_major(text, length, "nvidia-caps", &devices->caps_major);
}

int graft_host_read_driver_devices(const struct graft_root *host, struct graft_arena *arena,
				   struct graft_driver_devices *ret_devices, struct graft_error *err)
{
	const char *text, **names;
	size_t length, n;
	int rc = graft_root_read(host, "/proc/devices", FILE_MAX, arena, &text, &length);

	*ret_devices = (struct graft_driver_devices){ .params = "" };
	if (rc < 0)
		return graft_fail_errno(err, -rc, "read failed: /proc/devices");
	read_majors(text, length, ret_devices);
	if (graft_root_list(host, PCI_DEVICES, SIZE_MAX, arena, &names, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++)
		ret_devices->n_gpus += is_pci_gpu(host, names[i], arena);
	if (graft_root_read(host, PARAMS, FILE_MAX, arena, &text, &length) == 0)
		ret_devices->params = text;
	ret_devices->lists_mig = graft_root_read(host, MIG_MINORS, FILE_MAX, arena, &text, &length) == 0;
	if (ret_devices->lists_mig &&
	    graft_procfs_mig_minors(text, length, arena, &ret_devices->mig_minors, &ret_devices->n_mig_minors) < 0)
		return graft_fail_memory(err);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* ---- nodes ---- */

static bool is_left_out(const char *name)
{
	return graft_starts_with(name, "nvidia-fs") || graft_starts_with(name, "nvidia-nvswitch") ||
	       graft_starts_with(name, "nvidia-nvlink");
}

/* Adds a node. What is not a character device, or disappears meanwhile, is ignored. */
static int add_driver_node(const struct graft_root *root, const char *directory, const char *name,
			   struct graft_arena *arena, struct graft_node **nodes, size_t *n)
{
	const char *path = graft_arena_printf(arena, "%s/%s", directory, name);
	struct graft_node *node;
	struct stat st;

	if (!path)
		return -1;
	if (graft_root_stat(root, path, &st) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	node = graft_arena_push(arena, nodes, n, sizeof(*node));
	if (!node)
		return -1;
	*node = (struct graft_node){ .path = path, .source = directory };
	graft_node_describe(node, &st);
	return 0;
}

static int compare_driver_nodes(const void *a, const void *b)
{
	return strverscmp(((const struct graft_node *)a)->path, ((const struct graft_node *)b)->path);
}

int graft_host_list_driver_nodes(const struct graft_root *root, struct graft_arena *arena,
				 struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err)
{
	static const struct {
		const char *directory, *prefix;
	} places[] = { { "/dev", "nvidia" }, { "/dev/nvidia-caps", "nvidia-" } };

	*ret_nodes = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < GRAFT_COUNT(places); i++) {
		const char **names;
		size_t n;

		if (graft_root_list(root, places[i].directory, SIZE_MAX, arena, &names, &n, NULL) < 0)
			n = 0;
		for (size_t j = 0; j < n; j++) {
			if (graft_starts_with(names[j], places[i].prefix) && !is_left_out(names[j]) &&
			    add_driver_node(root, places[i].directory, names[j], arena, ret_nodes, ret_n) < 0)
				return graft_fail_memory(err);
		}
	}
	if (*ret_n > 1)
		qsort(*ret_nodes, *ret_n, sizeof(**ret_nodes), compare_driver_nodes);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
