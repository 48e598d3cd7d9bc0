/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_allocate: what a container gets for the devices that the kubelet has given to it (SPEC
 * kubernetes 6.5). Pure: the same input gives the same answer.
 */
#ifndef GRAFT_KUBERNETES_KUBE_ALLOCATE_H
#define GRAFT_KUBERNETES_KUBE_ALLOCATE_H

#include "base/arena.h"
#include "base/error.h"
#include "formats/record.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/kube_devices.h"

#define GRAFT_KUBE_CDI_VENDOR "k8s.device-plugin.nvidia.com"

struct graft_kube_pair {
	const char *name, *value;
};
struct graft_kube_mount {
	const char *container_path, *host_path;
	bool read_only;
};
struct graft_kube_node {
	const char *container_path, *host_path, *permissions;
};

/* Device nodes that every container with a GPU gets by `passDeviceSpecs`, if they exist. */
extern const char *const graft_kube_common_nodes[];
extern const size_t graft_n_kube_common_nodes;

/* ContainerAllocateResponse of the device plugin API; each list may be empty. */
struct graft_kube_answer {
	struct graft_kube_pair *envs;
	size_t n_envs;
	struct graft_kube_mount *mounts;
	size_t n_mounts;
	struct graft_kube_node *devices;
	size_t n_devices;
	struct graft_kube_pair *annotations;
	size_t n_annotations;
	const char **cdi_devices; /* qualified names */
	size_t n_cdi_devices;
};
extern const struct graft_record graft_kube_answer_record;

/*
 * Answers a request for the devices with these ids. `inventory` says which nodes of the driver
 * exist. `uuid` makes the annotation of `cdi-annotations` unique: a new random UUID for each call,
 * in its usual text form. Strings of the answer belong to the arena, the configuration or the
 * resource. Returns 0, or -1 with GRAFT_UNKNOWN_DEVICE or GRAFT_INVALID and the messages of SPEC
 * kubernetes 6.5, or GRAFT_NO_MEMORY. A request for no device is GRAFT_INVALID.
 */
int graft_kube_allocate(const struct graft_kube_config *config, const struct graft_inventory *inventory,
			const struct graft_kube_resource *resource, const char *const *ids, size_t n_ids,
			const char *uuid, struct graft_arena *arena, struct graft_kube_answer *ret_answer,
			struct graft_error *err);

#endif
