/* SPDX-License-Identifier: Apache-2.0 */
/* catalog: the tables. Nothing here looks at a host. */
#include "host/catalog.h"

#include "base/cleanup.h"

#define DISABLED_BY(member) offsetof(struct graft_host_options, member)
#define ALWAYS              0
/* The reason for a row, which no program reads. Reasons for refusals are reported. */
#define WHY(text) GRAFT_DOC(text)

/* NVML is the first: libraries.c knows its row by that. */
const struct graft_catalog_library graft_catalog_libraries[] = {
	{ GRAFT_CATALOG_NVML, GRAFT_CLASS_UTILITY, false, NULL, WHY("NVML, the management library") },
	{ "libnvidia-cfg.so", GRAFT_CLASS_UTILITY, false, NULL,
	  WHY("GPU configuration, used by the persistence daemon") },
	{ "libnvidia-nscq.so", GRAFT_CLASS_UTILITY, false, NULL, WHY("NVSwitch configuration and query") },

	{ "libcuda.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("CUDA driver library") },
	{ "libcudadebugger.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("CUDA debugger back end") },
	{ "libnvidia-opencl.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("OpenCL ICD") },
	{ "libnvidia-gpucomp.so", GRAFT_CLASS_COMPUTE, false, NULL,
	  WHY("shader compiler shared by CUDA and graphics") },
	{ "libnvidia-ptxjitcompiler.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("PTX to SASS compiler") },
	{ "libnvidia-fatbinaryloader.so", GRAFT_CLASS_COMPUTE, false, NULL,
	  WHY("fat binary loader (drivers before 450)") },
	{ "libnvidia-allocator.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("memory allocator shared by CUDA and GBM") },
	{ "libnvidia-compiler.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("OpenCL compiler (drivers before 530)") },
	{ "libnvidia-pkcs11.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("confidential computing, OpenSSL 1.1") },
	{ "libnvidia-pkcs11-openssl3.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("confidential computing, OpenSSL 3") },
	{ "libnvidia-nvvm.so", GRAFT_CLASS_COMPUTE, false, NULL,
	  WHY("NVVM compiler used by JIT link time optimisation") },
	{ "libnvidia-tileiras.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("tile IR assembler of CUDA 13.1 and later") },

	{ "libnvidia-ngx.so", GRAFT_CLASS_NGX, false, NULL, WHY("neural graphics features (DLSS)") },

	{ "libvdpau_nvidia.so", GRAFT_CLASS_VIDEO, false, "vdpau", WHY("VDPAU driver") },
	{ "libnvidia-encode.so", GRAFT_CLASS_VIDEO, false, NULL, WHY("video encoding (NVENC)") },
	{ "libnvidia-opticalflow.so", GRAFT_CLASS_VIDEO, false, NULL, WHY("optical flow") },
	{ "libnvcuvid.so", GRAFT_CLASS_VIDEO, false, NULL, WHY("video decoding (NVDEC)") },

	{ "libnvidia-eglcore.so", GRAFT_CLASS_GRAPHICS, false, NULL, WHY("core of EGL and GLES") },
	{ "libnvidia-glcore.so", GRAFT_CLASS_GRAPHICS, false, NULL, WHY("core of OpenGL") },
	/* Drivers used to ship two builds; take the one for kernels with thread-local storage. */
	{ "libnvidia-tls.so", GRAFT_CLASS_GRAPHICS, true, NULL, WHY("thread-local storage of the OpenGL libraries") },
	{ "libnvidia-glsi.so", GRAFT_CLASS_GRAPHICS, false, NULL, WHY("interface between the OpenGL libraries") },
	{ "libnvidia-fbc.so", GRAFT_CLASS_GRAPHICS, false, NULL, WHY("frame buffer capture") },
	{ "libnvidia-ifr.so", GRAFT_CLASS_GRAPHICS, false, NULL, WHY("OpenGL frame capture (drivers before 465)") },
	{ "libnvidia-rtcore.so", GRAFT_CLASS_GRAPHICS, false, NULL, WHY("ray tracing core") },
	{ "libnvoptix.so", GRAFT_CLASS_GRAPHICS, false, NULL, WHY("OptiX ray tracing") },

	{ "libGLX_nvidia.so", GRAFT_CLASS_GLVND, false, NULL, WHY("GLX and Vulkan vendor library") },
	{ "libEGL_nvidia.so", GRAFT_CLASS_GLVND, false, NULL, WHY("EGL vendor library") },
	{ "libGLESv2_nvidia.so", GRAFT_CLASS_GLVND, false, NULL, WHY("GLES 2 vendor library") },
	{ "libGLESv1_CM_nvidia.so", GRAFT_CLASS_GLVND, false, NULL, WHY("GLES 1 vendor library") },
	{ "libnvidia-glvkspirv.so", GRAFT_CLASS_GLVND, false, NULL, WHY("SPIR-V compiler for Vulkan") },
	{ "libnvidia-cbl.so", GRAFT_CLASS_GLVND, false, NULL, WHY("Vulkan ray tracing (drivers 440 to 460)") },

	{ "libGL.so", GRAFT_CLASS_NO_GLVND, false, NULL, WHY("OpenGL and GLX without vendor dispatch") },
	{ "libEGL.so", GRAFT_CLASS_NO_GLVND, false, NULL, WHY("EGL without vendor dispatch") },
	{ "libGLESv1_CM.so", GRAFT_CLASS_NO_GLVND, false, NULL, WHY("GLES 1 without vendor dispatch") },
	{ "libGLESv2.so", GRAFT_CLASS_NO_GLVND, false, NULL, WHY("GLES 2 without vendor dispatch") },

	{ "libdxcore.so", GRAFT_CLASS_WSL, false, NULL, WHY("DirectX core, the way to the GPU under WSL2") },
};
const size_t graft_n_catalog_libraries = GRAFT_COUNT(graft_catalog_libraries);

const struct graft_catalog_further_library graft_catalog_further_libraries[] = {
#define GRAPHICS(name, any, why)                                                              \
	{                                                                                     \
		{ name, GRAFT_CLASS_GLVND, false, NULL, WHY(why) }, GRAFT_NEED_FURTHER, (any) \
	}
#define EXPLICIT(name, class_, why)                                                  \
	{                                                                            \
		{ name, (class_), false, NULL, WHY(why) }, GRAFT_NEED_EXPLICIT, true \
	}
	GRAPHICS("libnvidia-egl-gbm.so", true, "EGL platform for GBM"),
	GRAPHICS("libnvidia-egl-wayland.so", true, "EGL platform for Wayland"),
	GRAPHICS("libnvidia-egl-wayland2.so", true, "EGL platform for Wayland, second edition"),
	GRAPHICS("libnvidia-egl-xcb.so", true, "EGL platform for X, by XCB (drivers since 560)"),
	GRAPHICS("libnvidia-egl-xlib.so", true, "EGL platform for X, by Xlib (drivers since 560)"),
	GRAPHICS("libnvidia-vulkan-producer.so", false, "Vulkan over EGL streams"),
	{ { "libnvidia-nvvm70.so", GRAFT_CLASS_COMPUTE, false, NULL, WHY("NVVM of an older language version") },
	  GRAFT_NEED_FURTHER,
	  true },
	EXPLICIT("libEGL.so", GRAFT_CLASS_GLVND, "dispatch layer of EGL"),
	EXPLICIT("libGL.so", GRAFT_CLASS_GLVND, "dispatch layer of OpenGL and GLX"),
	EXPLICIT("libGLESv1_CM.so", GRAFT_CLASS_GLVND, "dispatch layer of GLES 1"),
	EXPLICIT("libGLESv2.so", GRAFT_CLASS_GLVND, "dispatch layer of GLES 2"),
	EXPLICIT("libGLX.so", GRAFT_CLASS_GLVND, "dispatch layer of GLX"),
	EXPLICIT("libGLdispatch.so", GRAFT_CLASS_GLVND, "core of the dispatch layers"),
	EXPLICIT("libOpenCL.so", GRAFT_CLASS_COMPUTE, "loader of OpenCL"),
	EXPLICIT("libOpenGL.so", GRAFT_CLASS_GLVND, "dispatch layer of OpenGL"),
	EXPLICIT("libnvidia-api.so", GRAFT_CLASS_GLVND, "NVAPI, for programs ported from Windows"),
#undef GRAPHICS
#undef EXPLICIT
};
const size_t graft_n_catalog_further_libraries = GRAFT_COUNT(graft_catalog_further_libraries);

const struct graft_catalog_binary graft_catalog_binaries[] = {
	{ "nvidia-smi", GRAFT_CLASS_UTILITY, GRAFT_CAP_UTILITY, 0, ALWAYS, WHY("system management interface") },
	{ "nvidia-debugdump", GRAFT_CLASS_UTILITY, GRAFT_CAP_UTILITY, 0, ALWAYS, WHY("GPU core dump utility") },
	{ "nvidia-persistenced", GRAFT_CLASS_UTILITY, GRAFT_CAP_UTILITY, 0, ALWAYS, WHY("persistence daemon") },
	{ "nv-fabricmanager", GRAFT_CLASS_UTILITY, GRAFT_CAP_UTILITY, 0, ALWAYS, WHY("NVSwitch fabric manager") },
	{ "nvidia-cuda-mps-control", GRAFT_CLASS_COMPUTE, GRAFT_CAP_COMPUTE, 0, DISABLED_BY(no_mps),
	  WHY("MPS control program") },
	{ "nvidia-cuda-mps-server", GRAFT_CLASS_COMPUTE, GRAFT_CAP_COMPUTE, 0, DISABLED_BY(no_mps), WHY("MPS server") },
	{ "nvidia-imex", GRAFT_CLASS_UTILITY, GRAFT_CAP_UTILITY, GRAFT_NEED_FURTHER, ALWAYS,
	  WHY("service that shares memory across nodes") },
	{ "nvidia-imex-ctl", GRAFT_CLASS_UTILITY, GRAFT_CAP_UTILITY, GRAFT_NEED_FURTHER, ALWAYS,
	  WHY("its control program") },
	{ "nvidia-xconfig", GRAFT_CLASS_GRAPHICS, GRAFT_CAP_GRAPHICS | GRAFT_CAP_DISPLAY, GRAFT_NEED_FURTHER, ALWAYS,
	  WHY("writes the configuration of the container's own X server") },
};
const size_t graft_n_catalog_binaries = GRAFT_COUNT(graft_catalog_binaries);

const struct graft_catalog_firmware graft_catalog_firmwares[] = {
	{ "gsp", 0, WHY("of the GPU system processor") },
	{ "ucodes", GRAFT_NEED_FURTHER, WHY("of the other processors of the GPU (drivers since 610)") },
};
const size_t graft_n_catalog_firmwares = GRAFT_COUNT(graft_catalog_firmwares);

const struct graft_catalog_node graft_catalog_nodes[] = {
	{ "/dev/nvidiactl", NULL, 195, 255, true, ALWAYS, WHY("control node: every use of the driver opens it") },
	{ "/dev/nvidia-uvm", "nvidia-uvm", 0, 0, false, DISABLED_BY(no_uvm), WHY("unified memory: CUDA needs it") },
	{ "/dev/nvidia-uvm-tools", "nvidia-uvm", 0, 1, false, DISABLED_BY(no_uvm),
	  WHY("unified memory events: profilers") },
	{ "/dev/nvidia-modeset", NULL, 195, 254, true, DISABLED_BY(no_modeset), WHY("mode setting: displays") },
};
const size_t graft_n_catalog_nodes = GRAFT_COUNT(graft_catalog_nodes);

const struct graft_catalog_ipc graft_catalog_ipcs[] = {
	{ "/var/run/nvidia-persistenced/socket", GRAFT_CLASS_UTILITY, DISABLED_BY(no_persistenced),
	  WHY("socket of the persistence daemon") },
	{ "/var/run/nvidia-fabricmanager/socket", GRAFT_CLASS_UTILITY, DISABLED_BY(no_fabricmanager),
	  WHY("socket of the fabric manager") },
	{ NULL, GRAFT_CLASS_COMPUTE, DISABLED_BY(no_mps), WHY("pipe directory of MPS") },
};
const size_t graft_n_catalog_ipcs = GRAFT_COUNT(graft_catalog_ipcs);

/*
 * QUIRK: Vulkan loaders of every version search below /etc; the loaders in some images search
 * nowhere else.
 */
const struct graft_catalog_extra graft_catalog_extras[] = {
	{ "vulkan/icd.d/nvidia_icd.json", "/etc", GRAFT_CLASS_GRAPHICS, 0, WHY("names the Vulkan driver") },
	{ "vulkan/icd.d/nvidia_icd.x86_64.json", "/etc", GRAFT_CLASS_GRAPHICS, 0,
	  WHY("names the Vulkan driver (Fedora, x86-64)") },
	{ "vulkan/icd.d/nvidia_icd.aarch64.json", "/etc", GRAFT_CLASS_GRAPHICS, 0,
	  WHY("names the Vulkan driver (Fedora, Arm)") },
	{ "vulkan/icd.d/nvidia_layers.json", "/etc", GRAFT_CLASS_GRAPHICS, 0,
	  WHY("names the Vulkan layers (old place)") },
	{ "vulkan/implicit_layer.d/nvidia_layers.json", "/etc", GRAFT_CLASS_GRAPHICS, 0,
	  WHY("names the Vulkan layers") },
	{ "glvnd/egl_vendor.d/10_nvidia.json", NULL, GRAFT_CLASS_GRAPHICS, 0, WHY("names the EGL vendor library") },
	{ "egl/egl_external_platform.d/09_nvidia_wayland2.json", NULL, GRAFT_CLASS_GRAPHICS, 0,
	  WHY("names the EGL platform for Wayland") },
	{ "egl/egl_external_platform.d/10_nvidia_wayland.json", NULL, GRAFT_CLASS_GRAPHICS, 0,
	  WHY("names the EGL platform for Wayland") },
	{ "egl/egl_external_platform.d/15_nvidia_gbm.json", NULL, GRAFT_CLASS_GRAPHICS, 0,
	  WHY("names the EGL platform for GBM") },
	{ "egl/egl_external_platform.d/20_nvidia_xcb.json", NULL, GRAFT_CLASS_GRAPHICS, 0,
	  WHY("names the EGL platform for X, by XCB") },
	{ "egl/egl_external_platform.d/20_nvidia_xlib.json", NULL, GRAFT_CLASS_GRAPHICS, 0,
	  WHY("names the EGL platform for X, by Xlib") },
	{ "nvidia/nvoptix.bin", NULL, GRAFT_CLASS_GRAPHICS, 0, WHY("data of OptiX") },
	{ "OpenCL/vendors/nvidia.icd", NULL, GRAFT_CLASS_COMPUTE, 0, WHY("names the OpenCL library") },
	{ "X11/xorg.conf.d/10-nvidia.conf", NULL, GRAFT_CLASS_GRAPHICS, GRAFT_NEED_FURTHER,
	  WHY("points the X server to the driver") },
	{ "X11/xorg.conf.d/nvidia-drm-outputclass.conf", NULL, GRAFT_CLASS_GRAPHICS, GRAFT_NEED_FURTHER,
	  WHY("points the X server to the driver") },
};
const size_t graft_n_catalog_extras = GRAFT_COUNT(graft_catalog_extras);

const struct graft_catalog_gate_node graft_catalog_gate_nodes[] = {
	{ GRAFT_GATE_GDS, "/dev", "nvidia-fs", true, WHY("reads and writes of storage that bypass memory") },
	{ GRAFT_GATE_MOFED, "/dev/infiniband", "uverbs", true, WHY("user-space verbs of an adapter") },
	{ GRAFT_GATE_MOFED, "/dev/infiniband", "rdma_cm", false, WHY("connections between adapters") },
	{ GRAFT_GATE_GDRCOPY, "/dev", "gdrdrv", false, WHY("maps GPU memory for the CPU") },
	{ GRAFT_GATE_NVSWITCH, "/dev", "nvidia-nvswitchctl", false, WHY("all switches together") },
	{ GRAFT_GATE_NVSWITCH, "/dev", "nvidia-nvswitch", true, WHY("one switch") },
};
const size_t graft_n_catalog_gate_nodes = GRAFT_COUNT(graft_catalog_gate_nodes);

const struct graft_catalog_gate_file graft_catalog_gate_files[] = {
	{ GRAFT_GATE_GDS, "/run/udev", true, WHY("udev's data on block devices") },
	{ GRAFT_GATE_GDS, "/etc/cufile.json", false, WHY("configuration of the host") },
};
const size_t graft_n_catalog_gate_files = GRAFT_COUNT(graft_catalog_gate_files);

const struct graft_catalog_management_node graft_catalog_management_nodes[] = {
	{ "/dev", "nvidia-fs", true, WHY("GPUDirect storage is requested separately") },
	{ "/dev", "nvidia-nvswitch", true, WHY("NVSwitches are requested separately") },
	{ "/dev", "nvidia-nvlink", true, WHY("links between switches are the fabric manager's") },
	{ "/dev", "nvidia", false, WHY("GPUs and control nodes, of every kind") },
	{ "/dev/nvidia-caps", "nvidia-cap", false, WHY("MIG instances, and the rights to create and watch them") },
	{ "/dev/nvidia-caps-imex-channels", "channel", false, WHY("memory of other nodes") },
};
const size_t graft_n_catalog_management_nodes = GRAFT_COUNT(graft_catalog_management_nodes);

const struct graft_catalog_module graft_catalog_xorg_modules[] = {
	{ "nvidia_drv.so", false, WHY("driver of the X server") },
	{ "libglxserver_nvidia.so", true, WHY("GLX of the X server") },
};
const size_t graft_n_catalog_xorg_modules = GRAFT_COUNT(graft_catalog_xorg_modules);

const char *const graft_catalog_xorg_below[] = {
	"nvidia/xorg",
	"xorg/modules/drivers",
	"xorg/modules/extensions",
	"xorg/modules/updates/drivers",
	"xorg/modules/updates/extensions",
};
const size_t graft_n_catalog_xorg_below = GRAFT_COUNT(graft_catalog_xorg_below);

#define XORG_MODULES(library_directory)                                                \
	library_directory "/modules/drivers", library_directory "/modules/extensions", \
	    library_directory "/modules/updates/drivers", library_directory "/modules/updates/extensions"
const char *const graft_catalog_xorg_directories[] = {
	XORG_MODULES("/usr/lib/xorg"),
	XORG_MODULES("/usr/lib64/xorg"),
	XORG_MODULES("/usr/X11R6/lib"),
	XORG_MODULES("/usr/X11R6/lib64"),
};
const size_t graft_n_catalog_xorg_directories = GRAFT_COUNT(graft_catalog_xorg_directories);

/* Searched in this order if the loader's cache is unusable or does not know the driver. */
const struct graft_catalog_directory graft_catalog_library_directories[] = {
#if defined(__x86_64__)
	{ "/usr/lib/x86_64-linux-gnu", 64, WHY("multiarch (Debian, Ubuntu)") },
	{ "/usr/lib/x86_64-linux-gnu/nvidia/current", 64, WHY("Debian's alternatives") },
	{ "/usr/lib/i386-linux-gnu", 32, WHY("multiarch (Debian, Ubuntu)") },
	{ "/usr/lib/i386-linux-gnu/nvidia/current", 32, WHY("Debian's alternatives") },
#elif defined(__aarch64__)
	{ "/usr/lib/aarch64-linux-gnu", 64, WHY("multiarch (Debian, Ubuntu)") },
	{ "/usr/lib/aarch64-linux-gnu/nvidia", 64, WHY("Tegra") },
	{ "/usr/lib/aarch64-linux-gnu/tegra", 64, WHY("Tegra") },
	{ "/usr/lib/arm-linux-gnueabihf", 32, WHY("multiarch (Debian, Ubuntu)") },
#elif defined(__powerpc64__)
	{ "/usr/lib/powerpc64le-linux-gnu", 64, WHY("multiarch (Debian, Ubuntu)") },
#endif
	{ "/usr/lib64", 64, WHY("Fedora, RHEL, SUSE, Gentoo") },
	{ "/usr/lib64/nvidia", 64, WHY("RHEL packages of old drivers") },
	{ "/usr/lib", 0, WHY("Arch; 32-bit libraries where /usr/lib64 exists") },
	{ "/usr/lib32", 32, WHY("Arch, Gentoo") },
	{ "/lib64", 64, WHY("systems without a merged /usr") },
	{ "/lib", 0, WHY("systems without a merged /usr") },
	{ "/run/opengl-driver/lib", 64, WHY("NixOS") },
	{ "/run/opengl-driver-32/lib", 32, WHY("NixOS") },
	{ "/run/current-system/profile/lib", 64, WHY("Guix") },
	{ "/usr/local/lib", 64, WHY("Talos") },
	{ "/usr/local/nvidia/lib64", 64, WHY("Container-Optimized OS") },
	{ "/opt/nvidia/current/usr/lib64", 64, WHY("Flatcar") },
	{ "/usr/lib/wsl/lib", 64, WHY("WSL2") },
};
const size_t graft_n_catalog_library_directories = GRAFT_COUNT(graft_catalog_library_directories);

const struct graft_catalog_directory graft_catalog_data_directories[] = {
	{ "/etc", 0, WHY("configuration of the host takes precedence over what packages ship"), NULL },
	{ "/usr/local/share", 0, WHY("default of XDG_DATA_DIRS"), NULL },
	{ "/usr/share", 0, WHY("default of XDG_DATA_DIRS"), NULL },
	{ "/run/opengl-driver/etc", 0, WHY("NixOS"), "/etc" },
	{ "/run/opengl-driver/share", 0, WHY("NixOS"), "/usr/share" },
};
const size_t graft_n_catalog_data_directories = GRAFT_COUNT(graft_catalog_data_directories);

const struct graft_catalog_directory graft_catalog_binary_directories[] = {
	{ "/usr/bin", 0, WHY("where drivers install programs") },
	{ "/usr/sbin", 0, WHY("where distributions move daemons") },
	{ "/usr/local/bin", 0, WHY("programs that the administrator installed") },
	{ "/bin", 0, WHY("systems without a merged /usr") },
	{ "/sbin", 0, WHY("systems without a merged /usr") },
	{ "/run/current-system/sw/bin", 0, WHY("NixOS") },
	{ "/usr/local/nvidia/bin", 0, WHY("Container-Optimized OS") },
	{ "/opt/nvidia/current/usr/bin", 0, WHY("Flatcar") },
	{ "/opt/bin", 0, WHY("SUSE and others") },
};
const size_t graft_n_catalog_binary_directories = GRAFT_COUNT(graft_catalog_binary_directories);

const char *graft_catalog_binary_path(struct graft_arena *arena)
{
	const char *path = graft_catalog_binary_directories[0].path;

	for (size_t i = 1; path && i < GRAFT_COUNT(graft_catalog_binary_directories); i++)
		path = graft_arena_printf(arena, "%s:%s", path, graft_catalog_binary_directories[i].path);
	return path;
}

const struct graft_catalog_refusal graft_catalog_refusals[] = {
	{ "libGLX.so", WHY("part of the vendor-neutral dispatch layer, which belongs to the image") },
	{ "libOpenGL.so", WHY("part of the vendor-neutral dispatch layer, which belongs to the image") },
	{ "libGLdispatch.so", WHY("part of the vendor-neutral dispatch layer, which belongs to the image") },
	{ "libOpenCL.so", WHY("the OpenCL loader belongs to the image; the driver's part is libnvidia-opencl.so") },
	{ "libnvidia-gtk2.so", WHY("part of nvidia-settings, which configures the host's X server") },
	{ "libnvidia-gtk3.so", WHY("part of nvidia-settings, which configures the host's X server") },
	{ "libnvidia-wayland-client.so", WHY("part of nvidia-settings, which configures the host's display") },
	{ "libnvidia-sandboxutils.so", WHY("a helper for container tools; Graft reads the driver's file list itself") },
	{ "libnvidia-api.so", WHY("NVAPI, for programs ported from Windows; no capability includes it") },
	{ "libnvidia-vksc-core.so", WHY("Vulkan SC; no capability includes it") },
	{ "libnvidia-wfb.so", WHY("part of the host's X server") },
	{ "libglxserver_nvidia.so", WHY("part of the host's X server") },
	{ "nvidia-modprobe", WHY("set-uid program that loads modules and makes device nodes on the host") },
	{ "nvidia-settings", WHY("configures the host's X server") },
};
const size_t graft_n_catalog_refusals = GRAFT_COUNT(graft_catalog_refusals);

const struct graft_catalog_component graft_catalog_wsl_components[] = {
	{ "libcuda.so.1.1", WHY("CUDA driver library") },
	{ "libcuda_loader.so", WHY("finds the right libcuda") },
	{ "libnvidia-ptxjitcompiler.so.1", WHY("PTX to SASS compiler") },
	{ "libnvidia-ml.so.1", WHY("NVML, the management library") },
	{ "libnvidia-ml_loader.so", WHY("finds the right NVML") },
	{ "libnvdxgdmal.so.1", WHY("memory access layer over /dev/dxg") },
	{ "nvidia-smi", WHY("system management interface") },
	{ "nvcubins.bin", WHY("CUDA kernels of the driver") },
};
const size_t graft_n_catalog_wsl_components = GRAFT_COUNT(graft_catalog_wsl_components);

const struct graft_catalog_component graft_catalog_tegra_nodes[] = {
	{ "nvhost-", WHY("engines of the integrated GPU and of the video blocks") },
	{ "nvmap", WHY("memory of the system on chip") },
	{ "nvidiactl", WHY("control node of the display driver") },
	{ "nvidia0", WHY("the integrated GPU in the display driver") },
	{ "nvidia-modeset", WHY("mode setting") },
	{ "nvgpu/", WHY("nodes of the integrated GPU (JetPack 6 and later)") },
	{ "host1x-fence", WHY("synchronisation of engines") },
	{ "nvsciipc", WHY("inter-process streams") },
};
const size_t graft_n_catalog_tegra_nodes = GRAFT_COUNT(graft_catalog_tegra_nodes);

/*
 * The CUDA version that nvidia-smi of each branch reports; release notes and the CUDA toolkit's
 * driver table agree. Branches that are not listed (beta and embedded releases) are deliberately
 * unknown: NVML is asked instead. Sources: the toolkit's table for 7.0 to 13.0; the first lines of
 * nvidia-smi 595.71, 610.43 and 615.71 for 13.2 to 13.4. QUIRK: 430.26 reports 10.2, but later
 * drivers of that branch report 10.1; the table has the lower version.
 */
const struct graft_catalog_branch graft_catalog_branches[] = {
	{ 319, "5.5" },  { 331, "6.0" },  { 340, "6.5" },  { 343, "6.5" },  { 346, "7.0" },  { 352, "7.5" },
	{ 367, "8.0" },  { 375, "8.0" },  { 378, "8.0" },  { 381, "8.0" },  { 384, "9.0" },  { 387, "9.1" },
	{ 390, "9.1" },  { 396, "9.2" },  { 410, "10.0" }, { 415, "10.0" }, { 418, "10.1" }, { 430, "10.1" },
	{ 435, "10.1" }, { 440, "10.2" }, { 450, "11.0" }, { 455, "11.1" }, { 460, "11.2" }, { 465, "11.3" },
	{ 470, "11.4" }, { 495, "11.5" }, { 510, "11.6" }, { 515, "11.7" }, { 520, "11.8" }, { 525, "12.0" },
	{ 530, "12.1" }, { 535, "12.2" }, { 545, "12.3" }, { 550, "12.4" }, { 555, "12.5" }, { 560, "12.6" },
	{ 565, "12.7" }, { 570, "12.8" }, { 575, "12.9" }, { 580, "13.0" }, { 590, "13.1" }, { 595, "13.2" },
	{ 610, "13.3" }, { 615, "13.4" },
};
const size_t graft_n_catalog_branches = GRAFT_COUNT(graft_catalog_branches);
