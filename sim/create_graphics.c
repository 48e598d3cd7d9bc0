/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_graphics: what the loaders of graphics interfaces and the X server look for: descriptions
 * of drivers, modules, configuration. Their places depend on the distribution.
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "create_parts.h"
#include "elf_writer.h"

#define EGL_DRIVER(library)                                                      \
	"{\n    \"file_format_version\" : \"1.0.0\",\n    \"ICD\" : {\n        " \
	"\"library_path\" : \"" library "\"\n    }\n}\n"

static const struct {
	unsigned int since; /* major version of the driver */
	const char *name;   /* below the share directory */
	const char *text;
} descriptions[] = {
	{ 0, "vulkan/icd.d/nvidia_icd.json",
	  "{\n    \"file_format_version\" : \"1.0.1\",\n    \"ICD\": {\n        "
	  "\"library_path\": \"libGLX_nvidia.so.0\",\n"
	  "        \"api_version\" : \"1.3.277\"\n    }\n}\n" },
	{ 0, "vulkan/implicit_layer.d/nvidia_layers.json",
	  "{\n    \"file_format_version\" : \"1.0.0\",\n    \"layer\": {\n        \"name\": \"VK_LAYER_NV_optimus\",\n"
	  "        \"type\": \"INSTANCE\",\n        \"library_path\": \"libGLX_nvidia.so.0\",\n        \"api_version\" "
	  ": "
	  "\"1.3.277\",\n        \"implementation_version\" : \"1\",\n        \"description\" : \"simulated by "
	  "Graft\",\n        \"enable_environment\" : { \"__NV_PRIME_RENDER_OFFLOAD\" : \"1\" },\n"
	  "        \"disable_environment\" : { \"DISABLE_LAYER_NV_OPTIMUS_1\" : \"\" }\n    }\n}\n" },
	{ 0, "glvnd/egl_vendor.d/10_nvidia.json", EGL_DRIVER("libEGL_nvidia.so.0") },
	{ 0, "egl/egl_external_platform.d/10_nvidia_wayland.json", EGL_DRIVER("libnvidia-egl-wayland.so.1") },
	{ 0, "egl/egl_external_platform.d/15_nvidia_gbm.json", EGL_DRIVER("libnvidia-egl-gbm.so.1") },
	{ 590, "egl/egl_external_platform.d/09_nvidia_wayland2.json", EGL_DRIVER("libnvidia-egl-wayland2.so.1") },
	{ 560, "egl/egl_external_platform.d/20_nvidia_xcb.json", EGL_DRIVER("libnvidia-egl-xcb.so.1") },
	{ 560, "egl/egl_external_platform.d/20_nvidia_xlib.json", EGL_DRIVER("libnvidia-egl-xlib.so.1") },
	{ 0, "nvidia/nvoptix.bin", "simulated by Graft\n" },
};

static void make_descriptions(struct sim_tree *tree, const struct sim_places *places)
{
	const struct sim_topology *topology = tree->topology;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/OpenCL/vendors/nvidia.icd",
		       topology->layout == SIM_LAYOUT_NIXOS ? "/run/opengl-driver/etc" : "/etc");
	sim_tree_text(tree, path, 0644, "libnvidia-opencl.so.1\n");
	for (size_t i = 0; topology->files & SIM_FILES_GRAPHICS && i < GRAFT_COUNT(descriptions); i++) {
		if (topology->driver_major < descriptions[i].since)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", places->share, descriptions[i].name);
		sim_tree_text(tree, path, 0644, "%s", descriptions[i].text);
	}
}

static void make_module(struct sim_tree *tree, const char *path, const char *soname)
{
	const char *const needed[] = { "libc.so.6", NULL };
	struct graft_buffer bytes = { .max = 0 };

	sim_elf_write(&(struct sim_elf){ .machine = tree->topology->machine == SIM_MACHINE_AARCH64 ? SIM_ELF_AARCH64
												   : SIM_ELF_X86_64,
					 .soname = soname,
					 .needed = needed },
		      &bytes);
	sim_parts_buffer(tree, path, 0755, &bytes);
}

/*
 * Ubuntu keeps the modules next to the libraries, others in the X server's own directories; a
 * driver container contains what NVIDIA's installer creates.
 */
static void make_xorg_modules(struct sim_tree *tree, const char *drivers, const char *extensions)
{
	char path[256], file[64];

	(void)snprintf(path, sizeof(path), "%s/nvidia_drv.so", drivers);
	make_module(tree, path, "nvidia_drv.so");
	(void)snprintf(file, sizeof(file), "libglxserver_nvidia.so.%s", tree->topology->driver);
	(void)snprintf(path, sizeof(path), "%s/%s", extensions, file);
	make_module(tree, path, "libglxserver_nvidia.so");
	(void)snprintf(path, sizeof(path), "%s/libglxserver_nvidia.so", extensions);
	sim_tree_link(tree, path, file);
}

static void make_x_server(struct sim_tree *tree, const struct sim_places *places)
{
	static const char configuration[] = "Section \"OutputClass\"\n    Identifier \"nvidia\"\n"
					    "    MatchDriver \"nvidia-drm\"\n    Driver \"nvidia\"\nEndSection\n";
	char path[256];

	switch (tree->topology->layout) {
	case SIM_LAYOUT_DEBIAN:
		(void)snprintf(path, sizeof(path), "%s/nvidia/xorg", places->libraries);
		make_xorg_modules(tree, path, path);
		sim_tree_text(tree, "/usr/share/X11/xorg.conf.d/10-nvidia.conf", 0644, "%s", configuration);
		break;
	case SIM_LAYOUT_RHEL:
		make_xorg_modules(tree, "/usr/lib64/xorg/modules/drivers", "/usr/lib64/xorg/modules/extensions");
		sim_tree_text(tree, "/usr/share/X11/xorg.conf.d/10-nvidia.conf", 0644, "%s", configuration);
		break;
	case SIM_LAYOUT_DRIVER_CONTAINER:
		make_xorg_modules(tree, "/usr/lib/xorg/modules/drivers", "/usr/lib/xorg/modules/extensions");
		sim_tree_text(tree, "/usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf", 0644, "%s",
			      configuration);
		break;
	case SIM_LAYOUT_NIXOS:
	case SIM_LAYOUT_WSL2:
	case SIM_LAYOUT_TEGRA:
		break;
	}
}

void sim_create_graphics(struct sim_tree *tree, const struct sim_places *places)
{
	make_descriptions(tree, places);
	if (tree->topology->files & SIM_FILES_GRAPHICS)
		make_x_server(tree, places);
}
