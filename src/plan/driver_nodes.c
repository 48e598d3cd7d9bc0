/* SPDX-License-Identifier: Apache-2.0 */
/* driver_nodes: derives paths and numbers. Whether anything exists at a path is not known here. */
#include "plan/driver_nodes.h"

#include <string.h>

#define PROC_DEVICES "/proc/devices"
#define MIG_MINORS   "/proc/driver/nvidia-caps/mig-minors"

struct list {
	struct graft_arena *arena;
	struct graft_node *nodes;
	size_t n;
};

/* Memory failures are sticky in the arena. */
static void add_listed_node(struct list *list, const char *path, uint32_t major, uint32_t minor, const char *source)
{
	struct graft_node *node = path ? graft_arena_push(list->arena, &list->nodes, &list->n, sizeof(*node)) : NULL;

	if (node)
		*node = (struct graft_node){ .path = path, .major = major, .minor = minor, .source = source };
}

static int finish_node_list(const struct list *list, struct graft_node **ret_nodes, size_t *ret_n,
			    struct graft_error *err)
{
	*ret_nodes = list->nodes;
	*ret_n = list->n;
	return graft_arena_failed(list->arena) ? graft_fail_memory(err) : 0;
}

int graft_plan_control_nodes(const struct graft_driver_devices *devices, struct graft_arena *arena,
			     struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err)
{
	struct list list = { .arena = arena };

	if (!devices->any)
		return graft_fail(err, GRAFT_NO_DRIVER, 0, "failed to create devices info: no NVIDIA devices found");
	if (!devices->has_nvidia || !devices->has_uvm)
		return graft_fail(err, GRAFT_NO_DRIVER, 0,
				  "failed to determine major: invalid device node: " PROC_DEVICES " has no %s",
				  devices->has_nvidia ? "nvidia-uvm" : "nvidia");
	add_listed_node(&list, "/dev/nvidiactl", devices->nvidia_major, 255, PROC_DEVICES);
	add_listed_node(&list, "/dev/nvidia-modeset", devices->nvidia_major, 254, PROC_DEVICES);
	add_listed_node(&list, "/dev/nvidia-uvm", devices->uvm_major, 0, PROC_DEVICES);
	add_listed_node(&list, "/dev/nvidia-uvm-tools", devices->uvm_major, 1, PROC_DEVICES);
	return finish_node_list(&list, ret_nodes, ret_n, err);
}

/* Adds the capabilities of one GPU; -1 means those of no GPU, which are MIG's management nodes. */
static void add_capability_nodes(struct list *list, const struct graft_driver_devices *devices, int gpu)
{
	for (size_t i = 0; i < devices->n_mig_minors; i++) {
		const struct graft_mig_minor *item = &devices->mig_minors[i];

		if (item->gpu == gpu)
			add_listed_node(list,
					graft_arena_printf(list->arena, "/dev/nvidia-caps/nvidia-cap%u", item->minor),
					devices->caps_major, item->minor, MIG_MINORS);
	}
}

static int check_majors(const struct graft_driver_devices *devices, struct graft_error *err)
{
	const char *missing = NULL;

	if (devices->lists_mig && !devices->has_caps)
		missing = "nvidia-caps";
	if (!devices->has_uvm)
		missing = "nvidia-uvm";
	if (!devices->has_nvidia)
		missing = "nvidia";
	return missing ? graft_fail(err, GRAFT_NO_DRIVER, 0, "missing required device major %s", missing) : 0;
}

int graft_plan_driver_nodes(const struct graft_driver_devices *devices, struct graft_arena *arena,
			    struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err)
{
	struct list list = { .arena = arena };

	*ret_nodes = NULL;
	*ret_n = 0;
	if (check_majors(devices, err) < 0)
		return -1;
	if (devices->n_gpus == 0)
		return 0;
	add_listed_node(&list, "/dev/nvidia-modeset", devices->nvidia_major, 254, PROC_DEVICES);
	add_listed_node(&list, "/dev/nvidiactl", devices->nvidia_major, 255, PROC_DEVICES);
	add_listed_node(&list, "/dev/nvidia-uvm", devices->uvm_major, 0, PROC_DEVICES);
	add_listed_node(&list, "/dev/nvidia-uvm-tools", devices->uvm_major, 1, PROC_DEVICES);
	add_capability_nodes(&list, devices, -1);
	for (size_t i = 0; i < devices->n_gpus; i++) {
		add_listed_node(&list, graft_arena_printf(arena, "/dev/nvidia%zu", i), devices->nvidia_major,
				(uint32_t)i, "/sys/bus/pci/devices");
		add_capability_nodes(&list, devices, (int)i);
	}
	return finish_node_list(&list, ret_nodes, ret_n, err);
}

bool graft_is_gpu_node_name(const char *name)
{
	static const char prefix[] = "nvidia";
	const char *digits = name + strlen(prefix);

	if (strncmp(name, prefix, strlen(prefix)) != 0 || *digits == '\0')
		return false;
	return digits[strspn(digits, "0123456789")] == '\0';
}

bool graft_is_gpu_node(const char *path)
{
	static const char directory[] = "/dev/";

	return strncmp(path, directory, strlen(directory)) == 0 && graft_is_gpu_node_name(path + strlen(directory));
}
