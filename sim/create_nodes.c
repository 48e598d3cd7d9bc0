/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_nodes: device nodes of the native driver, of DRM with udev's links, and of storage and
 * network drivers that work together with GPUs.
 */
#include <stdio.h>

#include "create_parts.h"

#define NVIDIA_MAJOR     195u
#define DRM_MAJOR        226u
#define INFINIBAND_MAJOR 231u
#define MISC_MAJOR       10u
#define RDMA_CM_MINOR    58u
#define VERBS_MINOR      192u
#define FS_NODES         16u /* number of nodes that the module of GPUDirect Storage creates */

/* The distributions' ids of the groups "video" and "render". */
static gid_t video_group(const struct sim_topology *topology)
{
	return topology->layout == SIM_LAYOUT_RHEL ? 39 : 44;
}

static gid_t render_group(const struct sim_topology *topology)
{
	return topology->layout == SIM_LAYOUT_RHEL ? 105 : 104;
}

static void make_drm(struct sim_tree *tree, const struct sim_gpu *gpu, uint32_t number)
{
	const struct sim_topology *topology = tree->topology;
	char path[96], says[32];

	(void)snprintf(path, sizeof(path), "/dev/dri/card%u", number);
	sim_tree_group_node(tree, path, 0660, video_group(topology), DRM_MAJOR, number);
	(void)snprintf(path, sizeof(path), "/dev/dri/renderD%u", 128 + number);
	sim_tree_group_node(tree, path, 0660, render_group(topology), DRM_MAJOR, 128 + number);
	(void)snprintf(path, sizeof(path), "/dev/dri/by-path/pci-%04x:%02x:%02x.0-card", gpu->domain, gpu->bus,
		       gpu->device);
	(void)snprintf(says, sizeof(says), "../card%u", number);
	sim_tree_link(tree, path, says);
	(void)snprintf(path, sizeof(path), "/dev/dri/by-path/pci-%04x:%02x:%02x.0-render", gpu->domain, gpu->bus,
		       gpu->device);
	(void)snprintf(says, sizeof(says), "../renderD%u", 128 + number);
	sim_tree_link(tree, path, says);
}

static void make_fabric(struct sim_tree *tree)
{
	const struct sim_topology *topology = tree->topology;
	char path[64];

	for (uint32_t i = 0; i < topology->nvswitches; i++) {
		(void)snprintf(path, sizeof(path), "/dev/nvidia-nvswitch%u", i);
		sim_tree_node(tree, path, 0666, topology->majors.nvswitch, i);
	}
	if (topology->nvswitches > 0)
		sim_tree_node(tree, "/dev/nvidia-nvswitchctl", 0666, topology->majors.nvswitch, 255);
	for (uint32_t i = 0; i < topology->imex_channels; i++) {
		(void)snprintf(path, sizeof(path), "/dev/nvidia-caps-imex-channels/channel%u", i);
		sim_tree_node(tree, path, 0666, topology->majors.imex, i);
	}
}

static void make_gates(struct sim_tree *tree)
{
	const struct sim_topology *topology = tree->topology;
	char path[64];

	if (topology->gates & SIM_GATE_GDS) {
		for (uint32_t i = 0; i < FS_NODES; i++) {
			(void)snprintf(path, sizeof(path), "/dev/nvidia-fs%u", i);
			sim_tree_node(tree, path, 0666, topology->majors.fs, i);
		}
		sim_tree_text(tree, "/etc/cufile.json", 0644, "{\n  \"logging\": { \"level\": \"ERROR\" }\n}\n");
		sim_tree_directory(tree, "/run/udev/data", 0755);
	}
	if (topology->gates & SIM_GATE_MOFED) {
		for (uint32_t i = 0; i < topology->n_gpus; i++) {
			(void)snprintf(path, sizeof(path), "/dev/infiniband/uverbs%u", i);
			sim_tree_node(tree, path, 0666, INFINIBAND_MAJOR, VERBS_MINOR + i);
		}
		sim_tree_node(tree, "/dev/infiniband/rdma_cm", 0666, MISC_MAJOR, RDMA_CM_MINOR);
	}
	if (topology->gates & SIM_GATE_GDRCOPY)
		sim_tree_node(tree, "/dev/gdrdrv", 0666, topology->majors.gdrdrv, 0);
}

void sim_create_nodes(struct sim_tree *tree)
{
	const struct sim_topology *topology = tree->topology;
	char path[64];

	sim_tree_node(tree, "/dev/nvidiactl", 0666, NVIDIA_MAJOR, 255);
	for (size_t i = 0; i < topology->n_gpus; i++) {
		(void)snprintf(path, sizeof(path), "/dev/nvidia%u", topology->gpus[i].minor);
		sim_tree_node(tree, path, 0666, NVIDIA_MAJOR, topology->gpus[i].minor);
	}
	sim_tree_node(tree, "/dev/nvidia-modeset", 0666, NVIDIA_MAJOR, 254);
	sim_tree_node(tree, "/dev/nvidia-uvm", 0666, topology->majors.uvm, 0);
	sim_tree_node(tree, "/dev/nvidia-uvm-tools", 0666, topology->majors.uvm, 1);
	make_fabric(tree);
	make_gates(tree);
	for (uint32_t i = 0; topology->files & SIM_FILES_GRAPHICS && i < topology->n_gpus; i++)
		make_drm(tree, &topology->gpus[i], i);
}
