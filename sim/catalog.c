/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog: two tables with the files that the stack looks for (SPEC libnvidia-container 6.2, 6.3),
 * and others that it must leave alone.
 */
#include "catalog.h"

#define BASE   SIM_FILES_BASE
#define VIDEO  SIM_FILES_VIDEO
#define GFX    SIM_FILES_GRAPHICS
#define NGX    SIM_FILES_NGX
#define FABRIC SIM_FILES_FABRIC

/* clang-format off */
const struct sim_library sim_libraries[] = {
	/*
	 * stem                        soname files  since until 32     link   directory real                needed version
	 */
	{ "libnvidia-ml",              "1",   BASE,  0,    0,    true,  true,  NULL,     SIM_TEMPLATE_NVML,  NULL, NULL },
	{ "libnvidia-cfg",             "1",   BASE,  0,    0,    false, true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-nscq",            "2",   FABRIC, 450,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libcuda",                   "1",   BASE,  0,    0,    true,  true,  NULL,     SIM_TEMPLATE_CUDA,  NULL, NULL },
	{ "libcudadebugger",           "1",   BASE,  515,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-opencl",          "1",   BASE,  0,    0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-gpucomp",         NULL,  BASE,  550,  0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-ptxjitcompiler",  "1",   BASE,  0,    0,    true,  true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-fatbinaryloader", NULL,  BASE,  0,    450,  true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-allocator",       "1",   BASE,  440,  0,    true,  true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-compiler",        NULL,  BASE,  0,    520,  true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-pkcs11",          NULL,  BASE,  530,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-pkcs11-openssl3", NULL,  BASE,  530,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-nvvm",            "4",   BASE,  510,  0,    true,  true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-nvvm70",          "4",   BASE,  575,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, "4" },
	{ "libnvidia-tileiras",        NULL,  BASE,  590,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-sandboxutils",    "1",   BASE,  560,  0,    false, true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-ngx",             "1",   NGX,   430,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libvdpau_nvidia",           "1",   VIDEO, 0,    0,    true,  true,  "vdpau",  SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-encode",          "1",   VIDEO, 0,    0,    true,  true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-opticalflow",     "1",   VIDEO, 418,  0,    true,  true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvcuvid",                "1",   VIDEO, 0,    0,    true,  true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-eglcore",         NULL,  GFX,   0,    0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-glcore",          NULL,  GFX,   0,    0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  "libnvidia-tls", NULL },
	{ "libnvidia-tls",             NULL,  GFX,   0,    0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-glsi",            NULL,  GFX,   0,    0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-fbc",             "1",   GFX,   0,    0,    true,  true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-ifr",             "1",   GFX,   0,    470,  true,  true,  NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-rtcore",          NULL,  GFX,   418,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvoptix",                "1",   GFX,   418,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-glvkspirv",       NULL,  GFX,   396,  0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-cbl",             NULL,  GFX,   418,  470,  false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libnvidia-vulkan-producer", NULL,  GFX,   470,  0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
	{ "libGLX_nvidia",             "0",   GFX,   0,    0,    true,  false, NULL,     SIM_TEMPLATE_GLX,   "libnvidia-glcore", NULL },
	{ "libEGL_nvidia",             "0",   GFX,   0,    0,    true,  false, NULL,     SIM_TEMPLATE_EGL,   "libnvidia-eglcore", NULL },
	{ "libGLESv2_nvidia",          "2",   GFX,   0,    0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  "libnvidia-eglcore", NULL },
	{ "libGLESv1_CM_nvidia",       "1",   GFX,   0,    0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  "libnvidia-eglcore", NULL },
	{ "libnvidia-egl-gbm",         "1",   GFX,   495,  0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, "1.1.1" },
	{ "libnvidia-egl-wayland",     "1",   GFX,   378,  0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, "1.1.13" },
	{ "libnvidia-egl-wayland2",    "1",   GFX,   590,  0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, "1.0.1" },
	{ "libnvidia-egl-xcb",         "1",   GFX,   560,  579,  true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, "1" },
	{ "libnvidia-egl-xcb",         "1",   GFX,   580,  0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, "1.0.5" },
	{ "libnvidia-egl-xlib",        "1",   GFX,   560,  579,  true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, "1" },
	{ "libnvidia-egl-xlib",        "1",   GFX,   580,  0,    true,  false, NULL,     SIM_TEMPLATE_NONE,  NULL, "1.0.5" },
	{ "libnvidia-gtk3",            NULL,  GFX,   0,    0,    false, false, NULL,     SIM_TEMPLATE_NONE,  NULL, NULL },
};
const size_t sim_n_libraries = sizeof(sim_libraries) / sizeof(sim_libraries[0]);

const struct sim_binary sim_binaries[] = {
	{ "nvidia-smi",              SIM_PROGRAM_SMI,    false, false, false },
	{ "nvidia-debugdump",        SIM_PROGRAM_DAEMON, false, false, false },
	{ "nvidia-persistenced",     SIM_PROGRAM_DAEMON, false, false, false },
	{ "nv-fabricmanager",        SIM_PROGRAM_DAEMON, true,  false, false },
	{ "nvidia-cuda-mps-control", SIM_PROGRAM_DAEMON, false, false, false },
	{ "nvidia-cuda-mps-server",  SIM_PROGRAM_DAEMON, false, false, false },
	{ "nvidia-modprobe",         SIM_PROGRAM_DAEMON, false, false, false },
	{ "nvidia-imex",             SIM_PROGRAM_DAEMON, false, true,  false },
	{ "nvidia-imex-ctl",         SIM_PROGRAM_DAEMON, false, true,  false },
	{ "nvidia-xconfig",          SIM_PROGRAM_DAEMON, false, false, true },
};

const struct sim_firmware sim_firmwares[] = {
	{ "gsp_ga10x.bin",    0 },
	{ "gsp_tu10x.bin",    0 },
	{ "ucodes_ga10x.bin", 610 },
	{ "ucodes_tu10x.bin", 610 },
};
/* clang-format on */
const size_t sim_n_binaries = sizeof(sim_binaries) / sizeof(sim_binaries[0]);
const size_t sim_n_firmwares = sizeof(sim_firmwares) / sizeof(sim_firmwares[0]);

bool sim_library_wanted(const struct sim_library *library, const struct sim_topology *topology)
{
	if (!(library->files & topology->files) || topology->driver_major < library->since)
		return false;
	return library->until == 0 || topology->driver_major <= library->until;
}

bool sim_binary_wanted(const struct sim_binary *binary, const struct sim_topology *topology)
{
	return (!binary->fabric || topology->nvswitches > 0) && (!binary->imex || topology->imex_channels > 0) &&
	       (!binary->graphics || (topology->files & SIM_FILES_GRAPHICS) != 0);
}

bool sim_firmware_wanted(const struct sim_firmware *firmware, const struct sim_topology *topology)
{
	return topology->firmware && topology->driver_major >= firmware->since;
}
