/* SPDX-License-Identifier: Apache-2.0 */
/* nri_options: the command line of nvidia-nri-plugin. */
#ifndef GRAFT_KUBERNETES_NRI_OPTIONS_H
#define GRAFT_KUBERNETES_NRI_OPTIONS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/options.h"

/* Texts are "" if they are not given. */
struct graft_nri_flags {
	const char *socket, *index, *own_namespace, *management_kind;
	const char *config, *driver_root, *driver_root_seen, *hook_path, *install_hook;
	const char *pods_socket, *pods_checkpoint, *listen;
	const char **management_namespaces;
	size_t n_management_namespaces;
	struct graft_arena *arena; /* of the list; set before parsing */
};

extern const struct graft_command graft_nri_command;

#endif
