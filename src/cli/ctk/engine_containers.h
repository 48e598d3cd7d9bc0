/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_containers: finds the containers of this host that were started with a given runtime and
 * still exist. Their engines call that program again to stop and delete them.
 */
#ifndef GRAFT_CLI_CTK_ENGINE_CONTAINERS_H
#define GRAFT_CLI_CTK_ENGINE_CONTAINERS_H

#include <stdbool.h>

#include "cli/ctk/ctk.h"
#include "request/config.h"

/*
 * Collects the ids of the containers whose runtime `is_wanted` accepts, by its path as the engine
 * has it. Searches for the processes that manage containers: shims of containerd (Docker,
 * Kubernetes), one for each container or pod, and conmon (CRI-O, Podman). The ids are in the arena
 * of `ctk`. Returns 0, or -1 if out of memory or if the host's root cannot be opened.
 */
int ctk_engine_containers(struct ctk *ctk, bool (*is_wanted)(const char *path), struct graft_strings *ret_ids,
			  struct graft_error *err);

#endif
