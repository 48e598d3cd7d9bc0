/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature_object: the parts of a NodeFeature object that this program writes, as the server has
 * them and as they should be, in a form that can be compared. Sends nothing.
 */
#ifndef GRAFT_DAEMON_FEATURE_OBJECT_H
#define GRAFT_DAEMON_FEATURE_OBJECT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "cluster/cluster_watch.h"
#include "kubernetes/kube_labels.h"

#define FEATURE_OBJECT_MAX    ((size_t)4 << 20)
#define FEATURE_OBJECT_GROUP  "nfd.k8s-sigs.io/v1alpha1"
#define FEATURE_OBJECT_OWNERS 16 /* more are left out */

struct feature_owner {
	const char *api_version, *kind, *name, *uid;
	bool controller;
};

/* Sorted by UID. */
struct feature_owners {
	struct graft_arena *arena; /* holds their texts; NULL: there are none */
	struct feature_owner items[FEATURE_OBJECT_OWNERS];
	size_t n;
};

/* The server's object. Zeroed: there is none. */
struct feature_object {
	bool there;
	char version[GRAFT_CLUSTER_VERSION_SIZE]; /* resourceVersion */
	struct graft_buffer text;                 /* as feature_object_describe() makes it */
	struct feature_owners owners;
};

/* Replaces what is in `object`. NULL: there is none. Without memory the text is a failed buffer. */
void feature_object_read(struct feature_object *object, const struct graft_json_node *node);
/* Frees its memory; there is no object then. */
void feature_object_done(struct feature_object *object);

/*
 * Appends a text that is equal for objects that need no update: the sorted labels, and the node's
 * name.
 */
void feature_object_describe(const struct graft_kube_labels *labels, const char *node, struct graft_buffer *out);

/*
 * Replaces *owners with the pod in `document`, an object of the API server, and the pod's owners.
 * Returns 0, or -1 with GRAFT_FORMAT if it is not a pod, or GRAFT_NO_MEMORY.
 */
int feature_owners_of_pod(struct feature_owners *owners, const struct graft_json_node *document,
			  struct graft_error *err);
bool feature_owners_equal(const struct feature_owners *a, const struct feature_owners *b);
void feature_owners_done(struct feature_owners *owners);

/* The object to write. All of it is borrowed. */
struct feature_content {
	const char *name, *namespace_, *node;
	const char *version; /* of the object to replace; NULL: there is none */
	const struct feature_owners *owners;
	const struct graft_kube_labels *labels;
};
/* Appends the object as JSON. */
void feature_object_write(const struct feature_content *content, struct graft_buffer *out);

#endif
