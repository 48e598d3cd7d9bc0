/* SPDX-License-Identifier: Apache-2.0 */
/*
 * visible: which GPUs a process can see. A GPU is visible if its node exists and opening it is not
 * refused: a node without a driver fails with ENXIO, the device cgroup causes EPERM. Needs nothing
 * but libc, and no symbol newer than glibc 2.17, so that the libraries load in old images.
 */
#ifndef GRAFT_SIM_VISIBLE_H
#define GRAFT_SIM_VISIBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "data.h"

/* The block that graft-sim fills in. */
extern const volatile struct sim_data sim_data;

enum sim_access { SIM_ACCESS_YES, SIM_ACCESS_ABSENT, SIM_ACCESS_REFUSED, SIM_ACCESS_MODE };

/*
 * Tries to open a node. ABSENT: it does not exist; REFUSED: EPERM, from the device cgroup; MODE:
 * EACCES, from its owner and mode or a nodev mount.
 */
enum sim_access sim_access(const char *path, int flags);

/* Tries the node through which the driver itself is reached. */
enum sim_access sim_driver_access(void);
/* Returns whether kernel module and libraries have the same version; WSL2 and Tegra show no module. */
bool sim_versions_agree(void);
bool sim_gpu_visible(uint32_t index);
bool sim_mig_visible(uint32_t index, uint32_t mig);

/*
 * Copies at most size - 1 characters of a field of sim_data and adds a NUL. Returns false if the
 * text was cut off.
 */
bool sim_copy(char *to, uint32_t size, const volatile char *from);

#endif
