/* SPDX-License-Identifier: Apache-2.0 */
/* nri_options: the command line of nvidia-nri-plugin. */
#ifndef GRAFT_KUBERNETES_NRI_OPTIONS_H
#define GRAFT_KUBERNETES_NRI_OPTIONS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/options.h"

/* Texts that are not given, and have no default, are "". */
struct graft_nri_flags {
	const char *socket, *index, *own_namespace, *management_kind;
	const char *config, *driver_root, *driver_root_seen, *hook_path, *install_hook;
	const char *pods_socket, *pods_checkpoint, *listen;
	const char **management_namespaces;
	size_t n_management_namespaces;
	struct graft_arena *arena; /* of the list; set before parsing */
};

#define GRAFT_NRI_FLAGS_INIT                                                                                   \
	{                                                                                                      \
		.socket = "/var/run/nri/nri.sock", .index = "10", .own_namespace = "",                         \
		.management_kind = "management.nvidia.com/gpu", .config = "", .driver_root = "",               \
		.driver_root_seen = "", .hook_path = "", .install_hook = "",                                   \
		.pods_socket = "/var/lib/kubelet/pod-resources/kubelet.sock",                                  \
		.pods_checkpoint = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", .listen = "" \
	}

extern const struct graft_command graft_nri_command;

#endif
