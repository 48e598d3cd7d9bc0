/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capability: what a container may request of the driver, and the classes that the driver's files
 * fall into. The names are those of NVIDIA_DRIVER_CAPABILITIES and of the options of
 * nvidia-container-cli.
 */
#ifndef GRAFT_HOST_CAPABILITY_H
#define GRAFT_HOST_CAPABILITY_H

#include <stddef.h>

/* Identifier, name, command-line letter (0 = none), help text. */
#define GRAFT_CAPABILITY_LIST(X)                                                           \
	X(COMPUTE, "compute", 'c', "CUDA and OpenCL")                                      \
	X(COMPAT32, "compat32", 0, "the 32-bit libraries too")                             \
	X(GRAPHICS, "graphics", 'g', "OpenGL and Vulkan")                                  \
	X(UTILITY, "utility", 'u', "nvidia-smi and NVML")                                  \
	X(VIDEO, "video", 'v', "video encoding and decoding (implies compute libraries)")  \
	X(DISPLAY, "display", 'D', "X11 display (implies graphics libraries and modeset)") \
	X(NGX, "ngx", 'n', "NGX")

enum graft_capability_bit {
#define X(name, word, letter, help) GRAFT_CAP_BIT_##name,
	GRAFT_CAPABILITY_LIST(X)
#undef X
	    GRAFT_CAP_BITS
};
enum graft_capability {
#define X(name, word, letter, help) GRAFT_CAP_##name = 1u << GRAFT_CAP_BIT_##name,
	GRAFT_CAPABILITY_LIST(X)
#undef X
	    GRAFT_CAP_ALL = (1u << GRAFT_CAP_BITS) - 1u,
};
extern const char *const graft_capability_names[GRAFT_CAP_BITS]; /* indexed by bit number */
/* Returns the bit of a name of `length` bytes; GRAFT_CAP_ALL for "all"; 0 if it is unknown. */
unsigned int graft_capability_of(const char *name, size_t length);

/*
 * Classes of libraries (SPEC libnvidia-container 6.3), in the order in which they are looked up and
 * listed: identifier, name, and the capabilities of which any one selects the class. OTHER is for
 * libraries that the driver ships and no table knows; only a container that requests every
 * capability gets them.
 */
#define GRAFT_CLASS_LIST(X)                                                      \
	X(UTILITY, "utility", GRAFT_CAP_UTILITY)                                 \
	X(COMPUTE, "compute", GRAFT_CAP_COMPUTE | GRAFT_CAP_VIDEO)               \
	X(NGX, "ngx", GRAFT_CAP_NGX)                                             \
	X(VIDEO, "video", GRAFT_CAP_VIDEO)                                       \
	X(GRAPHICS, "graphics", GRAFT_CAP_GRAPHICS | GRAFT_CAP_DISPLAY)          \
	X(GLVND, "graphics-glvnd", GRAFT_CAP_GRAPHICS | GRAFT_CAP_DISPLAY)       \
	X(NO_GLVND, "graphics-no-glvnd", GRAFT_CAP_GRAPHICS | GRAFT_CAP_DISPLAY) \
	X(WSL, "wsl", GRAFT_CAP_ALL)                                             \
	X(OTHER, "other", GRAFT_CAP_ALL)

enum graft_class {
#define X(name, word, capabilities) GRAFT_CLASS_##name,
	GRAFT_CLASS_LIST(X)
#undef X
	    GRAFT_CLASS_MAX
};
extern const char *const graft_class_names[GRAFT_CLASS_MAX];
/* The capabilities that select a class, as bits; 0 if the class is out of range. */
unsigned int graft_class_capabilities(enum graft_class class_);

/*
 * Parts of the host, other than GPUs, that a container requests one by one, by setting NVIDIA_GDS
 * and similar variables to "enabled" (SPEC runtime-and-hook 7.10).
 */
#define GRAFT_GATE_LIST(X)                         \
	X(GDS, "gds", "GPUDirect storage")         \
	X(MOFED, "mofed", "InfiniBand adapters")   \
	X(GDRCOPY, "gdrcopy", "copies by the CPU") \
	X(NVSWITCH, "nvswitch", "NVSwitches")

enum graft_gate {
#define X(name, word, help) GRAFT_GATE_##name,
	GRAFT_GATE_LIST(X)
#undef X
	    GRAFT_GATE_MAX
};
#define GRAFT_GATE_ALL ((1u << GRAFT_GATE_MAX) - 1u)       /* as bits 1 << GRAFT_GATE_* */
extern const char *const graft_gate_names[GRAFT_GATE_MAX]; /* gds mofed gdrcopy nvswitch */

#endif
