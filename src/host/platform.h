/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform: what kind of host this is, for choosing a mode (SPEC runtime-and-hook 5.2), from files alone: no library is loaded and no GPU is woken. What cannot decide
 * on this host is not looked for: libraries could lie in a dozen directories, and nearly all hosts have neither of the two facts that they qualify.
 */
#ifndef GRAFT_HOST_PLATFORM_H
#define GRAFT_HOST_PLATFORM_H

#include <stdbool.h>

#include "base/root.h"

struct graft_platform_facts {
	bool dxcore; /* libdxcore.so is there; looked for only where tegra_files or integrated_gpu holds, else false */
	bool tegra_files; /* /etc/nv_tegra_release, or /sys/devices/soc0/family begins with "tegra" */
	bool nvml;        /* libnvidia-ml.so.1 is there; looked for only where tegra_files holds, else false */
	bool
	    integrated_gpu; /* a GPU of the running driver is an integrated one, by its model ("(nvgpu)", "NVIDIA Thor") */
};

/*
 * Never fails: what cannot be read is not there. `root` is the host's, `machine` is what uname(2) calls its processor: integrated GPUs are parts of Arm systems on a chip,
 * so on "x86_64" without their files no model is read, however many GPUs there are.
 */
struct graft_platform_facts graft_platform_detect(const struct graft_root *root, const char *machine);
/* The same with all facts looked for on any host, for those who have the time. */
struct graft_platform_facts graft_platform_detect_all(const struct graft_root *root);
/* graft_platform_detect() of the host that this runs on. */
struct graft_platform_facts graft_platform_of_host(void);

#endif
