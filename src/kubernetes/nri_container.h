/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_container: what a pod's container gets when its engine asks the NRI plugin (SPEC
 * installer-and-nri 15): what it asks for, whether it may have that, and the edits. Pure, except
 * that the nodes of a CDI specification are completed from the host.
 *
 * SECURITY: every pod of the node comes here, and users who make pods write their annotations and
 * their images' variables. Nothing is given merely because a text asks for it: annotations need a
 * policy, variables the kubelet's allocation.
 */
#ifndef GRAFT_KUBERNETES_NRI_CONTAINER_H
#define GRAFT_KUBERNETES_NRI_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/cdi/cdi.h"
#include "formats/oci_spec.h"
#include "host/cdi_registry.h"
#include "host/inventory.h"
#include "plan/plan.h"
#include "request/config.h"
#include "request/container.h"

/* A container as the engine describes it before it is made. Texts that are missing are "". */
struct graft_nri_container {
	const char *namespace_, *pod, *uid, *name;
	const char *handler;                          /* of the pod's RuntimeClass */
	struct graft_oci_annotation *pod_annotations; /* in any order */
	size_t n_pod_annotations;
	const char **env; /* "NAME=VALUE" */
	size_t n_env;
	struct graft_oci_mount *mounts;
	size_t n_mounts;
	struct graft_strings nodes;     /* paths of the devices that it has */
	struct graft_strings cdi_names; /* names of devices that the engine gives it */
};

struct graft_nri_policy {
	const struct graft_config *config;
	const char *management_kind;              /* "management.nvidia.com/gpu" */
	const char *own_namespace;                /* "" = none */
	const char *const *management_namespaces; /* others that may have management devices */
	size_t n_management_namespaces;
	const char *hook_path; /* of nvidia-cdi-hook, on the host */
	const char *driver_root_seen,
	    *driver_root; /* as this process sees it, and as the host sees it; NULL = the same */
};

/* What is known of the host. Borrowed. */
struct graft_nri_host {
	const struct graft_inventory *inventory;
	const struct graft_cdi_registry *registry; /* of the kinds that `allowed` names; NULL = none */
};

enum graft_nri_demand_kind {
	GRAFT_NRI_NOTHING, /* the container stays as it is */
	GRAFT_NRI_NAMES,   /* CDI devices, by annotation */
	GRAFT_NRI_DEVICES, /* what a device plugin gives, by variable or mounts */
};
struct graft_nri_demand {
	enum graft_nri_demand_kind kind;
	const char *origin;               /* the annotation, the variable or "volume mounts" */
	struct graft_strings names;       /* of NAMES: qualified, each once */
	struct graft_container container; /* of DEVICES */
	struct graft_oci_spec spec;       /* the same, as the view from which requests are made */
	bool compare;                     /* of DEVICES: only those that the kubelet has given */
	struct graft_error *why;          /* NULL, or what is wrong, if the kubelet has given GPUs */
};

/*
 * Reads what a container asks for, and refuses what it may not have. Strings belong to the
 * container or are in the arena. Returns -1 with GRAFT_PERMISSION if the policy forbids it; with
 * GRAFT_INVALID for malformed requests; or like graft_container_read(). A malformed request of an
 * image is an error only if the kubelet has given the container GPUs: see `why`.
 */
int graft_nri_read(const struct graft_nri_policy *policy, const struct graft_nri_container *container,
		   const struct graft_log *log, struct graft_arena *arena, struct graft_nri_demand *ret_demand,
		   struct graft_error *err);

/*
 * Returns whether a GPU is among the devices that the kubelet has given. Without one, a demand that
 * is compared with them gets nothing: it came from the image, and the host need not be read to
 * decide that.
 */
bool graft_nri_is_given(const struct graft_strings *ids);

/* What a container gets. */
struct graft_nri_answer {
	struct graft_cdi_edits edits; /* in the arena or in the plan */
	struct graft_plan *plan;      /* owned */
};
void graft_nri_answer_done(struct graft_nri_answer *answer);

/*
 * Makes the edits for a demand. `ids` are those of the devices that the kubelet has given to the
 * container; without a GPU, a demand that is compared with them becomes NOTHING, and "all" means
 * all of them. *ret_answer must be released with graft_nri_answer_done(), after a failure too.
 * Returns -1 with GRAFT_PERMISSION for a device that is not among them; GRAFT_NO_DRIVER if the host
 * has no driver; GRAFT_UNKNOWN_DEVICE for a device that it lacks; or the error of the rule that
 * failed.
 */
int graft_nri_decide(const struct graft_nri_policy *policy, const struct graft_nri_host *host,
		     const struct graft_strings *ids, struct graft_nri_demand *demand, const struct graft_log *log,
		     struct graft_arena *arena, struct graft_nri_answer *ret_answer, struct graft_error *err);

/*
 * Returns whether the configuration names CDI kinds, and which, in the arena: those of `allowed`
 * without the management kind, whose devices are not read from specifications. Returns -1 with
 * GRAFT_NO_MEMORY.
 */
int graft_nri_kinds(const struct graft_nri_policy *policy, struct graft_arena *arena, struct graft_strings *ret_kinds,
		    struct graft_error *err);

#endif
