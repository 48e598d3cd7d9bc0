/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_presence: which parts of a GPU are present, from sysfs, procfs and /dev. Wakes no GPU: it
 * does not ask a sleeping one whether it answers.
 */
#ifndef GRAFT_DAEMON_GPU_PRESENCE_H
#define GRAFT_DAEMON_GPU_PRESENCE_H

#include "daemon/health.h"

struct gpu_presence {
	bool pci;    /* it is on the bus, and answers or sleeps */
	bool procfs; /* the driver has it */
	bool node;   /* its device node is there */
	struct health_place place;
};

/* Examines a GPU of the inventory. `sys_root` is the prefix of /sys; "" for "/". */
struct gpu_presence gpu_presence_look(const struct graft_inventory *inventory, const struct graft_gpu *gpu,
				      const char *sys_root);
/* The place alone. */
struct health_place gpu_presence_place(const struct graft_inventory *inventory, const struct graft_gpu *gpu,
				       const char *sys_root);

#endif
