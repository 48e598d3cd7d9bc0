/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform: determines what kind of host this is, in order to choose a mode (SPEC runtime-and-hook
 * 5.2). Reads only files: it loads no library and wakes no GPU. Facts that cannot affect the
 * decision on this host are not looked up: libraries could be in a dozen directories, and nearly
 * all hosts have neither of the two facts that make them relevant.
 */
#ifndef GRAFT_HOST_PLATFORM_H
#define GRAFT_HOST_PLATFORM_H

#include <stdbool.h>

#include "base/root.h"

struct graft_platform_facts {
	bool dxcore; /* libdxcore.so exists; searched for only if tegra_files or integrated_gpu is true, else false */
	bool tegra_files; /* /etc/nv_tegra_release, or /sys/devices/soc0/family begins with "tegra" */
	bool nvml;        /* libnvidia-ml.so.1 exists; searched for only if tegra_files is true, else false */
	/*
	 * The driver lists an integrated GPU, by its model ("(nvgpu)", "NVIDIA Thor"), or
	 * tegra_files is true and it lists no GPU
	 */
	bool integrated_gpu;
};

/*
 * Returns whether the files of a Tegra system are below `root`. The kernel's files may be below
 * `host` instead, which may be NULL.
 */
bool graft_platform_has_tegra_files(const struct graft_root *root, const struct graft_root *host,
				    struct graft_arena *arena);

/* Returns whether a GPU is part of a system on chip, by its model, which may be NULL. */
bool graft_platform_is_integrated(const char *model);

/*
 * Detects the facts. Never fails: what cannot be read is treated as absent. `root` is the host's,
 * `machine` is the machine name from uname(2): integrated GPUs are parts of Arm systems on a chip,
 * so on "x86_64" without Tegra files no model is read, however many GPUs there are. NULL: look for
 * all facts, even for those that only matter on a board, which is slower.
 */
struct graft_platform_facts graft_platform_detect(const struct graft_root *root, const char *machine);
/* graft_platform_detect() for the host that this runs on. */
struct graft_platform_facts graft_platform_of_host(void);
/*
 * Returns whether this host is WSL2, judging by the node /dev/dxg. Windows loads its kernel
 * modules, and only NVML knows its GPUs.
 */
bool graft_platform_is_wsl(void);

#endif
