/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_feature: sends the labels to the API server, as the object of kind NodeFeature from which
 * Node Feature Discovery labels the node (SPEC kubernetes 8.1). The object is watched and restored
 * if another client removes or changes it: at once the first time, then after 1 s, 2 s and so on up
 * to a minute, with one warning. The pod that created it and the pod's owners own it, so it is
 * removed with them; until the pod can be read, it keeps its current owners.
 */
#ifndef GRAFT_DAEMON_NODE_FEATURE_H
#define GRAFT_DAEMON_NODE_FEATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/cluster_watch.h"
#include "daemon/feature_object.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/kube_labels.h"
#include "rpc/loop.h"

struct node_feature {
	/* Set by the caller, and borrowed. */
	struct graft_loop *loop;
	const struct graft_log *log;
	const struct graft_kube_api_flags *flags;
	const char *(*variable)(const char *name);
	/* Called when the object has the labels, and, with `once`, when something failed. May be NULL. */
	void (*settled)(void *arg, const struct graft_error *err);
	void *arg;
	bool once; /* do not try again */

	/* Its own. */
	struct graft_arena *arena; /* of paths */
	struct graft_cluster *cluster;
	const char *name, *collection, *query, *pod;
	struct graft_cluster_watch watch;

	/* The pod, from which the owners are read. */
	struct graft_cluster_call *pod_call;
	struct graft_loop_timer pod_again;
	int64_t pod_delay_ms;
	struct graft_error pod_failure; /* the last one that was logged */
	struct feature_owners owners;
	bool owned; /* the owners are known */

	/* The object. */
	struct graft_kube_labels labels; /* wanted; borrowed */
	struct graft_buffer wanted;      /* the same as text, with the node */
	struct feature_object seen;
	bool known;                      /* `seen` is the server's state */
	struct graft_cluster_call *call; /* writes it */
	bool moved;                      /* the watch has reported the object since that was sent */
	struct graft_loop_timer again;
	int64_t delay_ms;           /* of the next attempt after a failure */
	struct graft_error failure; /* the last one that was logged */

	/* Another client that writes it, too. */
	bool reached;       /* the object was as wanted, and the wanted object has not changed */
	bool pausing;       /* until `again` is due nothing is written */
	unsigned n_changes; /* changes by others, less than NODE_FEATURE_CALM_MS apart */
	int64_t changed_ms, pause_ms;
};

/*
 * Connects to the API server and queries the object. `feature` must not move until
 * node_feature_end(). Returns 0, or -1: GRAFT_INVALID without a node name, or the errors of
 * graft_cluster_open().
 */
int node_feature_begin(struct node_feature *feature, struct graft_error *err);
/*
 * Puts these labels into the object; they are borrowed until the next call or node_feature_end().
 * Cannot fail: failures are logged, and tried again.
 */
void node_feature_set(struct node_feature *feature, const struct graft_kube_labels *labels);
/* Ends all calls and frees everything; the object stays. Does nothing if it has not begun. */
void node_feature_end(struct node_feature *feature);

#endif
