/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create: the parts that all layouts share (procfs, sysfs, nodes, MIG, sockets), and the order of
 * all parts. create_files.c knows the places of libraries and programs.
 */
#include "create.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "create_parts.h"
#include "hardware.h"
#include "identity.h"

#define NVIDIA_MAJOR  195u
#define NVIDIA_VENDOR 0x10deu
#define MISC_MAJOR    10u
#define DXG_MINOR     125u

/* --- /proc and /sys --- */

static void make_version(struct sim_tree *tree)
{
	const struct sim_topology *topology = tree->topology;
	const char *machine = sim_machine_name(topology->machine);

	sim_tree_text(tree, "/proc/driver/nvidia/version", 0444,
		      "NVRM version: NVIDIA UNIX %s%s%s  %s  (Graft simulated driver)\n"
		      "GCC version:  none (no kernel module is loaded)\n",
		      topology->open_module ? "Open Kernel Module for " : "", machine,
		      topology->open_module ? "" : " Kernel Module", topology->module);
}

/*
 * The module's options with their default values, in the driver's order. Source: a published file
 * of 580.105.08; the branches that introduced the newer options are known only roughly.
 */
static const struct {
	unsigned int since; /* driver branch */
	const char *line;
} params[] = {
	{ 0, "ResmanDebugLevel: 4294967295" },
	{ 0, "RmLogonRC: 1" },
	{ 0, "ModifyDeviceFiles: 1" },
	{ 0, "DeviceFileUID: 0" },
	{ 0, "DeviceFileGID: 0" },
	{ 0, "DeviceFileMode: 438" },
	{ 0, "InitializeSystemMemoryAllocations: 1" },
	{ 0, "UsePageAttributeTable: 4294967295" },
	{ 0, "EnableMSI: 1" },
	{ 0, "EnablePCIeGen3: 0" },
	{ 0, "MemoryPoolSize: 0" },
	{ 0, "KMallocHeapMaxSize: 0" },
	{ 0, "VMallocHeapMaxSize: 0" },
	{ 0, "IgnoreMMIOCheck: 0" },
	{ 0, "EnableStreamMemOPs: 0" },
	{ 0, "EnableUserNUMAManagement: 1" },
	{ 0, "NvLinkDisable: 0" },
	{ 0, "RmProfilingAdminOnly: 1" },
	{ 430, "PreserveVideoMemoryAllocations: 0" },
	{ 470, "EnableS0ixPowerManagement: 0" },
	{ 470, "S0ixPowerManagementVideoMemoryThreshold: 256" },
	{ 435, "DynamicPowerManagement: 3" },
	{ 435, "DynamicPowerManagementVideoMemoryThreshold: 200" },
	{ 450, "RegisterPCIDriver: 1" },
	{ 470, "EnablePCIERelaxedOrderingMode: 0" },
	{ 495, "EnableResizableBar: 0" },
	{ 470, "EnableGpuFirmware: 18" },
	{ 470, "EnableGpuFirmwareLogs: 2" },
	{ 525, "RmNvlinkBandwidthLinkCount: 0" },
	{ 515, "EnableDbgBreakpoint: 0" },
	{ 515, "OpenRmEnableUnsupportedGpus: 1" },
	{ 530, "DmaRemapPeerMmio: 1" },
	{ 550, "ImexChannelCount: 2048" },
	{ 565, "CreateImexChannel0: 0" },
	{ 570, "GrdmaPciTopoCheckOverride: 0" },
	{ 580, "CoherentGPUMemoryMode: \"\"" },
	{ 0, "RegistryDwords: \"\"" },
	{ 0, "RegistryDwordsPerDevice: \"\"" },
	{ 0, "RmMsg: \"\"" },
	{ 0, "GpuBlacklist: \"\"" },
	{ 430, "TemporaryFilePath: \"\"" },
	{ 455, "ExcludedGpus: \"\"" },
};

static void make_params(struct sim_tree *tree)
{
	struct graft_buffer lines = { .max = 0 };

	for (size_t i = 0; i < GRAFT_COUNT(params); i++) {
		if (tree->topology->driver_major >= params[i].since)
			graft_buffer_printf(&lines, "%s\n", params[i].line);
	}
	sim_parts_buffer(tree, "/proc/driver/nvidia/params", 0444, &lines);
	sim_tree_text(tree, "/proc/driver/nvidia/registry", 0444, "Binary: \"\"\n");
	sim_tree_text(tree, "/proc/driver/nvidia/warnings/README", 0444, "This driver is simulated by Graft.\n");
	sim_tree_text(tree, "/proc/driver/nvidia/patches/README", 0444, "This driver is simulated by Graft.\n");
}

static void make_information(struct sim_tree *tree, const struct sim_gpu *gpu)
{
	/*
	 * The driver shows this before it has initialised a GPU for the first time, and for a lost
	 * GPU.
	 */
	static const char unknown[] = "GPU-\?\?\?\?\?\?\?\?-\?\?\?\?-\?\?\?\?-\?\?\?\?-\?\?\?\?\?\?\?\?\?\?\?\?";
	const struct sim_topology *topology = tree->topology;
	bool known = topology->uuids_in_procfs && !gpu->lost;
	/* QUIRK: from Hopper on a GPU addresses 52 bits. */
	bool wide = gpu->model->arch >= SIM_ARCH_HOPPER;
	char path[96], bus_id[32], vbios[32], firmware[64] = "";

	(void)snprintf(bus_id, sizeof(bus_id), "%04x:%02x:%02x.0", gpu->domain, gpu->bus, gpu->device);
	(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", bus_id);
	sim_vbios(topology, gpu, vbios, sizeof(vbios));
	if (topology->driver_major >= 470)
		(void)snprintf(firmware, sizeof(firmware), "GPU Firmware: \t %s\n",
			       topology->firmware ? topology->module : "N/A");
	sim_tree_text(tree, path, 0444,
		      "Model: \t\t %s\nIRQ:   \t\t %u\nGPU UUID: \t %s\nVideo BIOS: \t %s\nBus Type: \t PCIe\n"
		      "DMA Size: \t %s bits\nDMA Mask: \t 0x%s\nBus Location: \t %s\nDevice Minor: \t %u\n%s%s:\t %s\n",
		      gpu->name, 100 + gpu->minor, known ? gpu->uuid : unknown,
		      known ? vbios : "\?\?.\?\?.\?\?.\?\?.\?\?", wide ? "52" : "47",
		      wide ? "fffffffffffff" : "7fffffffffff", bus_id, gpu->minor, firmware,
		      topology->driver_major >= 455 ? "GPU Excluded" : "Blacklisted", gpu->excluded ? "Yes" : "No");
	(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/registry", bus_id);
	sim_tree_text(tree, path, 0444, "Binary: \"\"\n");
	(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/power", bus_id);
	sim_tree_text(tree, path, 0444,
		      "Runtime D3 status:          Disabled by default\nVideo Memory:               Active\n");
}

#define SYSFS_PCI "/sys/bus/pci/devices"

/* A function of the PCI bus. `base` is the place of its directory below /sys/devices. */
struct pci_function {
	const char *base, *bus_id;
	uint16_t vendor, device, subsystem;
	uint32_t class_, numa_node;
	bool lost;
};

static void make_pci_function(struct sim_tree *tree, const struct pci_function *function)
{
	unsigned char config[256] = { 0, 0, 0, 0, 0x07, 0x04, 0x10, 0x00, 0xa1 };
	char base[600], path[640];

	memcpy(config, (const uint16_t[]){ htole16(function->vendor), htole16(function->device) }, 4);
	config[9] = (unsigned char)function->class_;
	config[10] = (unsigned char)(function->class_ >> 8);
	config[11] = (unsigned char)(function->class_ >> 16);
	memcpy(&config[0x2c], (const uint16_t[]){ htole16(function->vendor), htole16(function->subsystem) }, 4);
	if (function->lost) /* what a read on the bus returns if no device answers */
		memset(config, 0xff, sizeof(config));
	(void)snprintf(path, sizeof(path), "../../../devices/%s/%s", function->base, function->bus_id);
	(void)snprintf(base, sizeof(base), SYSFS_PCI "/%s", function->bus_id);
	sim_tree_link(tree, base, path);
	(void)snprintf(base, sizeof(base), "/sys/devices/%s/%s", function->base, function->bus_id);
	(void)snprintf(path, sizeof(path), "%s/config", base);
	sim_tree_file(tree, path, 0644, config, sizeof(config));
	(void)snprintf(path, sizeof(path), "%s/vendor", base);
	sim_tree_text(tree, path, 0444, "0x%04x\n", function->vendor);
	(void)snprintf(path, sizeof(path), "%s/device", base);
	sim_tree_text(tree, path, 0444, "0x%04x\n", function->device);
	(void)snprintf(path, sizeof(path), "%s/class", base);
	sim_tree_text(tree, path, 0444, "0x%06x\n", function->class_);
	(void)snprintf(path, sizeof(path), "%s/subsystem_vendor", base);
	sim_tree_text(tree, path, 0444, "0x%04x\n", function->vendor);
	(void)snprintf(path, sizeof(path), "%s/subsystem_device", base);
	sim_tree_text(tree, path, 0444, "0x%04x\n", function->subsystem);
	(void)snprintf(path, sizeof(path), "%s/numa_node", base);
	sim_tree_text(tree, path, 0444, "%u\n", function->numa_node);
}

/* Returns whether one of the first `n` GPUs is below that bridge, which is the end of `bridges`. */
static bool has_bridge(const struct sim_topology *topology, size_t n, const char *bridges)
{
	size_t length = strlen(bridges);

	for (size_t i = 0; i < n; i++) {
		const char *other = topology->gpus[i].bridges;

		if (strncmp(other, bridges, length) == 0 && (other[length] == '/' || other[length] == '\0'))
			return true;
	}
	return false;
}

/*
 * The bridges above a GPU that are not above any of the GPUs before it. The first one is the
 * host's.
 */
static void make_bridges(struct sim_tree *tree, size_t gpu)
{
	const struct sim_topology *topology = tree->topology;
	char bridges[256];

	(void)snprintf(bridges, sizeof(bridges), "%s", topology->gpus[gpu].bridges);
	for (char *slash = strchr(bridges, '/'), *next; slash; slash = next) {
		next = strchr(slash + 1, '/');
		if (next)
			*next = '\0';
		if (!has_bridge(topology, gpu, bridges)) {
			*slash = '\0';
			make_pci_function(tree, &(struct pci_function){ .base = bridges,
									.bus_id = slash + 1,
									.vendor = 0x1000,
									.device = 0xc010,
									.subsystem = 0x100b,
									.class_ = 0x060400,
									.numa_node = topology->gpus[gpu].numa_node });
			*slash = '/';
		}
		if (next)
			*next = '/';
	}
}

#define SYSFS_DRIVER "/sys/bus/pci/drivers/nvidia"

/* The links that the kernel makes when a driver takes a device. */
static void bind_to_driver(struct sim_tree *tree, const struct sim_gpu *gpu, const char *bus_id)
{
	char path[400], target[400];
	size_t length = 0;

	(void)snprintf(path, sizeof(path), SYSFS_DRIVER "/%s", bus_id);
	(void)snprintf(target, sizeof(target), "../../../../devices/%s/%s", gpu->bridges, bus_id);
	sim_tree_link(tree, path, target);
	/* Up from the device and from each bridge above it, then from devices. */
	for (const char *bridge = gpu->bridges; bridge; bridge = strchr(bridge + 1, '/'))
		length += (size_t)snprintf(target + length, sizeof(target) - length, "../");
	(void)snprintf(target + length, sizeof(target) - length, "../../bus/pci/drivers/nvidia");
	(void)snprintf(path, sizeof(path), "/sys/devices/%s/%s/driver", gpu->bridges, bus_id);
	sim_tree_link(tree, path, target);
}

/* Of a GPU's device for displays: NAME and its minor number. */
static void make_drm_minor(struct sim_tree *tree, const struct sim_gpu *gpu, const char *bus_id, const char *name,
			   size_t minor)
{
	char base[400], path[420];

	(void)snprintf(base, sizeof(base), "/sys/devices/%s/%s/drm/%s", gpu->bridges, bus_id, name);
	(void)snprintf(path, sizeof(path), "%s/dev", base);
	sim_tree_text(tree, path, 0444, "226:%zu\n", minor);
	(void)snprintf(path, sizeof(path), "%s/uevent", base);
	sim_tree_text(tree, path, 0444, "MAJOR=226\nMINOR=%zu\nDEVNAME=dri/%s\n", minor, name);
}

static void make_pci_gpu(struct sim_tree *tree, size_t i)
{
	const struct sim_gpu *gpu = &tree->topology->gpus[i];
	bool display = gpu->model->brand == SIM_BRAND_GEFORCE || gpu->model->brand == SIM_BRAND_RTX;
	char bus_id[32], name[32];

	(void)snprintf(bus_id, sizeof(bus_id), "%04x:%02x:%02x.0", gpu->domain, gpu->bus, gpu->device);
	make_bridges(tree, i);
	make_pci_function(tree, &(struct pci_function){ .base = gpu->bridges,
							.bus_id = bus_id,
							.vendor = NVIDIA_VENDOR,
							.device = gpu->model->pci_device,
							.subsystem = gpu->model->pci_subsystem,
							.class_ = display ? 0x030000 : 0x030200,
							.numa_node = gpu->numa_node,
							.lost = gpu->lost });
	if (tree->topology->module)
		bind_to_driver(tree, gpu, bus_id);
	if (!(tree->topology->files & SIM_FILES_GRAPHICS))
		return;
	(void)snprintf(name, sizeof(name), "card%zu", i);
	make_drm_minor(tree, gpu, bus_id, name, i);
	(void)snprintf(name, sizeof(name), "renderD%zu", 128 + i);
	make_drm_minor(tree, gpu, bus_id, name, 128 + i);
}

static void make_pci(struct sim_tree *tree)
{
	char base[32], bus_id[32];

	for (size_t i = 0; i < tree->topology->n_gpus; i++)
		make_pci_gpu(tree, i);
	if (tree->topology->module && tree->topology->n_gpus > 0)
		sim_tree_link(tree, SYSFS_DRIVER "/module", "../../../../module/nvidia");
	for (uint32_t i = 0; i < tree->topology->nvswitches; i++) {
		(void)snprintf(base, sizeof(base), "pci0000:%02x", SIM_NVSWITCH_FIRST_BUS + i - 1);
		(void)snprintf(bus_id, sizeof(bus_id), "0000:%02x:00.0", SIM_NVSWITCH_FIRST_BUS + i);
		make_pci_function(tree, &(struct pci_function){ .base = base,
								.bus_id = bus_id,
								.vendor = NVIDIA_VENDOR,
								.device = 0x22a3,
								.subsystem = 0x1796,
								.class_ = 0x068000 });
	}
}

static void make_kernel_modules(struct sim_tree *tree)
{
	static const struct {
		const char *name, *uses;
		unsigned int size;
	} modules[] = { { "nvidia_uvm", "0 -", 4964352 },
			{ "nvidia_drm", "0 -", 94208 },
			{ "nvidia_modeset", "1 nvidia_drm,", 1388544 },
			{ "nvidia", "2 nvidia_uvm,nvidia_modeset,", 54112256 } };
	struct graft_buffer lines = { .max = 0 };
	char path[64];

	for (size_t i = 0; i < GRAFT_COUNT(modules); i++) {
		graft_buffer_printf(&lines, "%s %u %s Live 0x0000000000000000 (POE)\n", modules[i].name,
				    modules[i].size, modules[i].uses);
		(void)snprintf(path, sizeof(path), "/sys/module/%s/initstate", modules[i].name);
		sim_tree_text(tree, path, 0444, "live\n");
		(void)snprintf(path, sizeof(path), "/sys/module/%s/version", modules[i].name);
		sim_tree_text(tree, path, 0444, "%s\n", tree->topology->module);
	}
	sim_parts_buffer(tree, "/proc/modules", 0444, &lines);
}

/* Whether the driver has /dev/nvidia-caps. */
static bool has_caps(const struct sim_topology *topology)
{
	return topology->module && topology->driver_major >= 450;
}

/* Only the driver's part of /proc/devices; sim_enter() adds it to the machine's own list. */
void sim_proc_devices(const struct sim_topology *topology, struct graft_buffer *out)
{
	if (!topology->module)
		return;
	graft_buffer_printf(out, "%3u nvidia\n%3u nvidia-modeset\n%3u nvidiactl\n", NVIDIA_MAJOR, NVIDIA_MAJOR,
			    NVIDIA_MAJOR);
	if (topology->nvswitches > 0)
		graft_buffer_printf(out, "%3u nvidia-nvswitch\n", topology->majors.nvswitch);
	graft_buffer_printf(out, "%3u nvidia-uvm\n", topology->majors.uvm);
	if (topology->gates & SIM_GATE_GDS)
		graft_buffer_printf(out, "%3u nvidia-fs\n", topology->majors.fs);
	if (topology->gates & SIM_GATE_GDRCOPY)
		graft_buffer_printf(out, "%3u gdrdrv\n", topology->majors.gdrdrv);
	if (topology->driver_major >= 525)
		graft_buffer_printf(out, "%3u nvidia-caps-imex-channels\n", topology->majors.imex);
	if (has_caps(topology))
		graft_buffer_printf(out, "%3u nvidia-caps\n", topology->majors.caps);
}

static void make_devices_list(struct sim_tree *tree)
{
	struct graft_buffer lines = { .max = 0 };

	graft_buffer_string(&lines, "Character devices:\n  1 mem\n  4 tty\n  5 /dev/tty\n  5 /dev/console\n 10 misc\n"
				    "136 pts\n");
	sim_proc_devices(tree->topology, &lines);
	if (tree->topology->gates & SIM_GATE_MOFED)
		graft_buffer_string(&lines, "231 infiniband_verbs\n");
	graft_buffer_string(&lines, "226 drm\n\nBlock devices:\n  7 loop\n  8 sd\n259 blkext\n");
	sim_parts_buffer(tree, "/proc/devices", 0444, &lines);
}

/* --- capabilities and MIG --- */

static void make_access(struct sim_tree *tree, const char *path, uint32_t minor)
{
	char node[64];

	sim_tree_text(tree, path, 0444, "DeviceFileMinor: %u\nDeviceFileMode: %u\nDeviceFileModify: 1\n", minor,
		      minor == 1 ? 256u : 292u);
	(void)snprintf(node, sizeof(node), "/dev/nvidia-caps/nvidia-cap%u", minor);
	sim_tree_node(tree, node, minor == 1 ? 0400 : 0444, tree->topology->majors.caps, minor);
}

static void make_mig(struct sim_tree *tree, const struct sim_gpu *gpu)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%u/mig", gpu->minor);
	sim_tree_directory(tree, path, 0555);
	for (size_t i = 0; i < gpu->n_mig; i++) {
		const struct sim_mig *mig = &gpu->mig[i];

		(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/access", gpu->minor,
			       mig->gi);
		if (mig->ci == 0)
			make_access(tree, path, mig->gi_minor);
		(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/ci%u/access",
			       gpu->minor, mig->gi, mig->ci);
		make_access(tree, path, mig->ci_minor);
	}
}

/* The driver lists every instance that could exist on 32 GPUs, whether it exists or not. */
static void make_mig_minors(struct sim_tree *tree)
{
	struct graft_buffer lines = { .max = 0 };

	graft_buffer_string(&lines, "config 1\nmonitor 2\n");
	for (uint32_t gpu = 0; gpu < 32; gpu++) {
		for (uint32_t gi = 0; gi < 15; gi++) {
			graft_buffer_printf(&lines, "gpu%u/gi%u/access %u\n", gpu, gi, sim_mig_minor(gpu, gi, -1));
			for (int ci = 0; ci < 8; ci++)
				graft_buffer_printf(&lines, "gpu%u/gi%u/ci%d/access %u\n", gpu, gi, ci,
						    sim_mig_minor(gpu, gi, ci));
		}
	}
	sim_parts_buffer(tree, "/proc/driver/nvidia-caps/mig-minors", 0444, &lines);
}

static void make_caps(struct sim_tree *tree)
{
	const struct sim_topology *topology = tree->topology;

	if (!has_caps(topology))
		return;
	make_mig_minors(tree);
	make_access(tree, "/proc/driver/nvidia/capabilities/mig/config", 1);
	make_access(tree, "/proc/driver/nvidia/capabilities/mig/monitor", 2);
	for (size_t i = 0; i < topology->n_gpus; i++) {
		if (topology->gpus[i].model->mig_profiles[0] != '\0')
			make_mig(tree, &topology->gpus[i]);
	}
	if (topology->driver_major >= 525) {
		/* The first minor after those of MIG: 4323. */
		uint32_t minor = sim_mig_minor(32, 0, -1);

		sim_tree_text(tree, "/proc/driver/nvidia/capabilities/fabric-imex-mgmt", 0444,
			      "DeviceFileMinor: %u\nDeviceFileMode: 256\nDeviceFileModify: 1\n", minor);
		sim_tree_text(tree, "/proc/driver/nvidia-caps/sys-minors", 0444, "fabric-imex-mgmt %u\n", minor);
	}
}

/* --- sockets and other platforms --- */

static void make_kernel_side(struct sim_tree *tree)
{
	const struct sim_topology *topology = tree->topology;

	make_devices_list(tree);
	make_pci(tree);
	if (!topology->module)
		return;
	make_version(tree);
	make_params(tree);
	make_kernel_modules(tree);
	for (size_t i = 0; i < topology->n_gpus; i++)
		make_information(tree, &topology->gpus[i]);
	make_caps(tree);
	sim_create_nodes(tree);
}

static void make_sockets(struct sim_tree *tree)
{
	const struct sim_topology *topology = tree->topology;

	if (topology->persistenced)
		sim_tree_socket(tree, "/run/nvidia-persistenced/socket");
	if (topology->fabricmanager)
		sim_tree_socket(tree, "/run/nvidia-fabricmanager/socket");
	if (topology->mps) {
		sim_tree_directory(tree, "/tmp/nvidia-mps", 0755);
		sim_tree_socket(tree, "/tmp/nvidia-mps/control");
	}
}

static void make_wsl(struct sim_tree *tree)
{
	sim_tree_node(tree, "/dev/dxg", 0666, MISC_MAJOR, DXG_MINOR);
	sim_tree_text(tree, "/proc/sys/kernel/osrelease", 0444, "5.15.153.1-microsoft-standard-WSL2\n");
	sim_tree_text(tree, "/proc/devices", 0444,
		      "Character devices:\n  1 mem\n  5 /dev/tty\n 10 misc\n136 pts\n\n"
		      "Block devices:\n  8 sd\n");
}

static void make_tegra(struct sim_tree *tree)
{
	sim_tree_text(tree, "/etc/nv_tegra_release", 0644,
		      "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64, DATE: Tue Aug  1 "
		      "19:57:35 UTC 2023\n");
	sim_tree_text(tree, "/sys/devices/soc0/family", 0444, "Tegra\n");
	sim_tree_text(tree, "/sys/devices/soc0/machine", 0444, "Jetson AGX Orin (simulated by Graft)\n");
	sim_tree_text(tree, "/proc/devices", 0444,
		      "Character devices:\n  1 mem\n  5 /dev/tty\n 10 misc\n136 pts\n%3u nvhost\n%3u nvgpu\n\n"
		      "Block devices:\n  7 loop\n",
		      tree->topology->majors.uvm, tree->topology->majors.caps);
	sim_tree_node(tree, "/dev/nvmap", 0660, MISC_MAJOR, 124);
	sim_tree_node(tree, "/dev/nvhost-ctrl", 0660, tree->topology->majors.uvm, 0);
	sim_tree_node(tree, "/dev/nvhost-gpu", 0660, tree->topology->majors.caps, 1);
	sim_tree_node(tree, "/dev/nvhost-as-gpu", 0660, tree->topology->majors.caps, 2);
	sim_tree_node(tree, "/dev/nvgpu/igpu0/power", 0660, tree->topology->majors.caps, 3);
}

static void make_host(struct sim_tree *tree)
{
	switch (tree->topology->layout) {
	case SIM_LAYOUT_WSL2:
		make_wsl(tree);
		break;
	case SIM_LAYOUT_TEGRA:
		make_tegra(tree);
		break;
	case SIM_LAYOUT_DEBIAN:
	case SIM_LAYOUT_RHEL:
	case SIM_LAYOUT_DRIVER_CONTAINER:
	case SIM_LAYOUT_NIXOS:
		make_kernel_side(tree);
		make_sockets(tree);
		break;
	}
}

static void make_all(struct sim_tree *tree)
{
	struct sim_places places;

	sim_places(tree->topology, &places);
	make_host(tree);
	if (!tree->topology->driver)
		return;
	tree->prefix = places.prefix;
	/*
	 * A driver container's root has its own /proc, /sys and /dev, which tools read when they
	 * are given that root.
	 */
	if (places.prefix[0] != '\0')
		make_host(tree);
	sim_create_files(tree, &places);
	tree->prefix = "";
}

int sim_create(const struct sim_topology *topology, const char *directory, bool *ret_nodes_refused,
	       struct graft_error *err)
{
	struct sim_tree tree;

	if (sim_tree_open(&tree, topology, directory, err) == 0)
		make_all(&tree);
	*ret_nodes_refused = tree.nodes_refused;
	if (sim_tree_finish(&tree) < 0)
		return graft_wrap(err, "topology '%s'", topology->name);
	return 0;
}
