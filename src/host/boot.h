/* SPDX-License-Identifier: Apache-2.0 */
/* boot: which start of the kernel this is. */
#ifndef GRAFT_HOST_BOOT_H
#define GRAFT_HOST_BOOT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/root.h"

/*
 * The kernel's boot id below a root that has its procfs: "d2f1...". In the arena. *ret_id is NULL where the kernel does not say, or not in the form of such an
 * id. -1: GRAFT_NO_MEMORY.
 */
int graft_host_boot_id(const struct graft_root *root, struct graft_arena *arena, const char **ret_id,
		       struct graft_error *err);

#endif
