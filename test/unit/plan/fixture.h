/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture: a small host in memory: three GPUs (0 plain, 1 in MIG mode with two devices, 2 with a minor that is not its index) and one that
 * is excluded, a library of every class, one of everything else. fixture_add_further() adds what few containers ask for.
 */
#ifndef GRAFT_TEST_PLAN_FIXTURE_H
#define GRAFT_TEST_PLAN_FIXTURE_H

#include <string.h>

#include "base/cleanup.h"
#include "plan/planner.h"

#define FIXTURE_NODE(p, maj, min)                                                                            \
	{                                                                                                    \
		.path = (p), .major = (maj), .minor = (min), .present = true, .mode = 0666, .source = "test" \
	}

struct fixture {
	struct graft_inventory inventory;
	struct graft_node nodes[4];
	struct graft_gpu gpus[4];
	struct graft_mig_device migs[2];
	struct graft_node caps_nodes[2];
	struct graft_library libraries[9], libraries32[2];
	struct graft_binary binaries[2];
	struct graft_ipc ipcs[3];
	struct graft_extra_file extra_files[2];
	struct graft_proc_file proc_files[2];
	struct graft_imex_node imex[2];
	const char *firmwares[1];
	struct graft_policy policy;
	/* only what fixture_add_further() adds */
	struct graft_drm_node drm_nodes[2][2];
	struct graft_library further_libraries[9 + 6];
	struct graft_extra_file further_extra_files[2 + 2];
	struct graft_gate_node gate_nodes[3];
	struct graft_gate_file gate_files[2];
};

static inline void fixture_init(struct fixture *f)
{
	static const struct fixture data = {
		.inventory = { .version = GRAFT_INVENTORY_VERSION,
			       .platform = GRAFT_PLATFORM_NATIVE,
			       .root = "/",
			       .dev_root = "/",
			       .proc_root = "/",
			       .machine = "x86_64",
			       .driver_version = { "550.54.14", "test" },
			       .cuda_version = { "12.4", "bounded from driver version" },
			       .caps_devices = true,
			       .proc_driver_nvidia = true,
			       .mig_config_node = FIXTURE_NODE("/dev/nvidia-caps/nvidia-cap1", 234, 1),
			       .mig_monitor_node = FIXTURE_NODE("/dev/nvidia-caps/nvidia-cap2", 234, 2) },
		.nodes = { FIXTURE_NODE("/dev/nvidiactl", 195, 255), FIXTURE_NODE("/dev/nvidia-uvm", 510, 0),
			   FIXTURE_NODE("/dev/nvidia-uvm-tools", 510, 1),
			   FIXTURE_NODE("/dev/nvidia-modeset", 195, 254) },
		.gpus = { { .index = 0,
			    .bus_id = "00000000:1b:00.0",
			    .procfs_path = "/proc/driver/nvidia/gpus/0000:1b:00.0",
			    .uuid = { "GPU-aaaa", "test" },
			    .model = { "Test GPU", "test" },
			    .node = FIXTURE_NODE("/dev/nvidia0", 195, 0) },
			  { .index = 1,
			    .bus_id = "00000000:1c:00.0",
			    .procfs_path = "/proc/driver/nvidia/gpus/0000:1c:00.0",
			    .uuid = { "GPU-bbbb", "test" },
			    .node = FIXTURE_NODE("/dev/nvidia1", 195, 1),
			    .mig_capable = true,
			    .mig_enabled = true },
			  { .index = 2,
			    .bus_id = "00000001:1b:00.0",
			    .procfs_path = "/proc/driver/nvidia/gpus/0001:1b:00.0",
			    .uuid = { "GPU-cccc", "test" },
			    .node = FIXTURE_NODE("/dev/nvidia7", 195, 7),
			    .mig_capable = true },
			  { .excluded = true,
			    .bus_id = "00000000:ff:00.0",
			    .uuid = { "GPU-dddd", "test" },
			    .node = FIXTURE_NODE("/dev/nvidia9", 195, 9) } },
		.migs = { { .index = 0,
			    .gi = 1,
			    .ci = 0,
			    .uuid = { "MIG-1111", "nvml" },
			    .gi_caps_path = "/proc/driver/nvidia/capabilities/gpu1/mig/gi1",
			    .ci_caps_path = "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0",
			    .gi_node = FIXTURE_NODE("/dev/nvidia-caps/nvidia-cap10", 234, 10),
			    .ci_node = FIXTURE_NODE("/dev/nvidia-caps/nvidia-cap11", 234, 11) },
			  { .index = 1,
			    .gi = 2,
			    .ci = 3,
			    .gi_caps_path = "/proc/driver/nvidia/capabilities/gpu1/mig/gi2",
			    .ci_caps_path = "/proc/driver/nvidia/capabilities/gpu1/mig/gi2/ci3",
			    .gi_node = FIXTURE_NODE("/dev/nvidia-caps/nvidia-cap20", 234, 20),
			    .ci_node = FIXTURE_NODE("/dev/nvidia-caps/nvidia-cap21", 234, 21) } },
		.caps_nodes = { FIXTURE_NODE("/dev/nvidia-caps/nvidia-cap10", 234, 10),
				FIXTURE_NODE("/dev/nvidia-caps/nvidia-cap11", 234, 11) },
		.libraries = { { "/usr/lib/libnvidia-ml.so.550.54.14", "libnvidia-ml.so.1", 0x303, GRAFT_CLASS_UTILITY,
				 "test" },
			       { "/usr/lib/libcuda.so.550.54.14", "libcuda.so.1", 0x303, GRAFT_CLASS_COMPUTE, "test" },
			       { "/usr/lib/libnvidia-ngx.so.550.54.14", "libnvidia-ngx.so.1", 0x303, GRAFT_CLASS_NGX,
				 "test" },
			       { "/usr/lib/libnvidia-opticalflow.so.550.54.14", "libnvidia-opticalflow.so.1", 0x303,
				 GRAFT_CLASS_VIDEO, "test" },
			       { "/usr/lib/libnvidia-glcore.so.550.54.14", "libnvidia-glcore.so.550.54.14", 0x303,
				 GRAFT_CLASS_GRAPHICS, "test" },
			       { "/usr/lib/libGLX_nvidia.so.550.54.14", "libGLX_nvidia.so.0", 0x303, GRAFT_CLASS_GLVND,
				 "test" },
			       { "/usr/lib/old/libGL.so.1.550", "libGL.so.1", 0x303, GRAFT_CLASS_NO_GLVND, "test" },
			       /* the same file name elsewhere; the same soname under another file name */
			       { "/opt/lib/libcuda.so.550.54.14", "libcuda.so.1", 0x303, GRAFT_CLASS_COMPUTE, "test" },
			       { "/opt/lib/libcuda.so.550.54.14.b", "libcuda.so.1", 0x303, GRAFT_CLASS_COMPUTE,
				 "test" } },
		.libraries32 = { { "/usr/lib32/libcuda.so.550.54.14", "libcuda.so.1", 0x003, GRAFT_CLASS_COMPUTE,
				   "test" },
				 { "/usr/lib32/libGLX_nvidia.so.550.54.14", "libGLX_nvidia.so.0", 0x003,
				   GRAFT_CLASS_GLVND, "test" } },
		.binaries = { { "/usr/bin/nvidia-smi", "nvidia-smi", GRAFT_CLASS_UTILITY, "test" },
			      { "/opt/bin/mps-real", "nvidia-cuda-mps-control", GRAFT_CLASS_COMPUTE, "test" } },
		.ipcs = { { "/run/nvidia-persistenced/socket", false, GRAFT_CLASS_UTILITY, "test" },
			  { "/run/nvidia-fabricmanager/socket", false, GRAFT_CLASS_UTILITY, "test" },
			  { "/tmp/nvidia-mps", true, GRAFT_CLASS_COMPUTE, "test" } },
		.extra_files = { { "/usr/share/vulkan/icd.d/nvidia_icd.json", "/etc/vulkan/icd.d/nvidia_icd.json",
				   GRAFT_CLASS_GLVND, "test" },
				 { "/etc/OpenCL/vendors/nvidia.icd", NULL, GRAFT_CLASS_COMPUTE, "test" } },
		.proc_files = { { "/proc/driver/nvidia/params", 0444, "A: 1\nModifyDeviceFiles: 1\nB: 2\n", "test" },
				{ "/proc/driver/nvidia/version", 0444, "NVRM version: 550.54.14\n", "test" } },
		.imex = { { 0, FIXTURE_NODE("/dev/nvidia-caps-imex-channels/channel0", 233, 0) },
			  { 5, { .path = "/dev/nvidia-caps-imex-channels/channel5", .major = 233, .minor = 5 } } },
		.firmwares = { "/lib/firmware/nvidia/550.54.14/gsp_ga10x.bin" },
		.policy = { .image = { .debian = true, .proc_driver = true, .proc_driver_nvidia = true } },
	};

	*f = data;
#define LIST(m)                \
	f->inventory.m = f->m; \
	f->inventory.n_##m = GRAFT_COUNT(f->m)
	LIST(nodes);
	LIST(gpus);
	LIST(libraries);
	LIST(libraries32);
	LIST(binaries);
	LIST(ipcs);
	LIST(extra_files);
	LIST(proc_files);
	LIST(imex);
	LIST(firmwares);
#undef LIST
	f->gpus[1].mig_devices = f->migs;
	f->gpus[1].n_mig_devices = GRAFT_COUNT(f->migs);
	f->gpus[1].caps_nodes = f->caps_nodes;
	f->gpus[1].n_caps_nodes = GRAFT_COUNT(f->caps_nodes);
}

/* What only graphics, gates and the whole of a driver bring along: DRM nodes of GPUs 0 and 1, EGL platforms, an unknown library, modules of the X server. */
static inline void fixture_add_further(struct fixture *f)
{
#define VERSION "550.54.14"
	static const struct graft_drm_node drm_nodes[2][2] = {
		{ { .node = FIXTURE_NODE("/dev/dri/card1", 226, 1),
		    .by_path = "/dev/dri/by-path/pci-0000:1b:00.0-card",
		    .by_path_content = "../card1" },
		  { .node = FIXTURE_NODE("/dev/dri/renderD129", 226, 129),
		    .by_path = "/dev/dri/by-path/pci-0000:1b:00.0-render",
		    .by_path_content = "../renderD129" } },
		{ { .node = FIXTURE_NODE("/dev/dri/card2", 226, 2) },
		  { .node = FIXTURE_NODE("/dev/dri/renderD130", 226, 130) } },
	};
	static const struct graft_library libraries[] = {
		{ "/usr/lib/libnvidia-allocator.so." VERSION, "libnvidia-allocator.so.1", 0x303, GRAFT_CLASS_COMPUTE,
		  "test", true },
		{ "/usr/lib/vdpau/libvdpau_nvidia.so." VERSION, "libvdpau_nvidia.so.1", 0x303, GRAFT_CLASS_VIDEO,
		  "test", false },
		{ "/usr/lib/libnvidia-egl-gbm.so.1.1.1", "libnvidia-egl-gbm.so.1", 0x303, GRAFT_CLASS_GLVND, "test",
		  false },
		{ "/usr/lib/libnvidia-vulkan-producer.so." VERSION, "libnvidia-vulkan-producer.so." VERSION, 0x303,
		  GRAFT_CLASS_GLVND, "test", false },
		{ "/usr/lib/libnvidia-new.so." VERSION, "libnvidia-new.so.1", 0x303, GRAFT_CLASS_OTHER, "test", true },
		{ "/lib64/libnvidia-other.so." VERSION, "libnvidia-other.so." VERSION, 0x303, GRAFT_CLASS_OTHER, "test",
		  false },
	};
	static const struct graft_extra_file extra_files[] = {
		{ "/usr/lib/nvidia/xorg/libglxserver_nvidia.so." VERSION, NULL, GRAFT_CLASS_GRAPHICS, "test" },
		{ "/opt/nvidia_drv.so", "/usr/lib/nvidia/xorg/nvidia_drv.so", GRAFT_CLASS_GRAPHICS, "test" },
	};
	static const struct graft_gate_node gate_nodes[] = {
		{ GRAFT_GATE_GDS, FIXTURE_NODE("/dev/nvidia-fs0", 503, 0) },
		{ GRAFT_GATE_GDS, FIXTURE_NODE("/dev/nvidia-fs1", 503, 1) },
		{ GRAFT_GATE_GDRCOPY, FIXTURE_NODE("/dev/gdrdrv", 502, 0) },
	};
	static const struct graft_gate_file gate_files[] = {
		{ GRAFT_GATE_GDS, "/run/udev", NULL, true },
		{ GRAFT_GATE_GDS, "/usr/local/cuda/cufile.json", "/etc/cufile.json", false },
	};

	memcpy(f->drm_nodes, drm_nodes, sizeof(drm_nodes));
	f->drm_nodes[0][0].node.gid = 44;
	f->drm_nodes[0][0].node.mode = 0660;
	for (size_t i = 0; i < 2; i++) {
		f->gpus[i].drm_nodes = f->drm_nodes[i];
		f->gpus[i].n_drm_nodes = 2;
	}
	memcpy(f->further_libraries, f->libraries, sizeof(f->libraries));
	memcpy(f->further_libraries + GRAFT_COUNT(f->libraries), libraries, sizeof(libraries));
	f->inventory.libraries = f->further_libraries;
	f->inventory.n_libraries = GRAFT_COUNT(f->further_libraries);
	memcpy(f->further_extra_files, f->extra_files, sizeof(f->extra_files));
	memcpy(f->further_extra_files + GRAFT_COUNT(f->extra_files), extra_files, sizeof(extra_files));
	f->inventory.extra_files = f->further_extra_files;
	f->inventory.n_extra_files = GRAFT_COUNT(f->further_extra_files);
	memcpy(f->gate_nodes, gate_nodes, sizeof(gate_nodes));
	f->inventory.gate_nodes = f->gate_nodes;
	f->inventory.n_gate_nodes = GRAFT_COUNT(f->gate_nodes);
	memcpy(f->gate_files, gate_files, sizeof(gate_files));
	f->inventory.gate_files = f->gate_files;
	f->inventory.n_gate_files = GRAFT_COUNT(f->gate_files);
#undef VERSION
}

#endif
