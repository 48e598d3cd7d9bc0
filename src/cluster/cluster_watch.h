/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_watch: follows the objects of a collection until the watch is closed. It lists them, then
 * reads the server's stream of events. A stream that ends is continued from the newest
 * resourceVersion of its events and bookmarks. If the server no longer has that version (410 Gone)
 * or sends something that is not an event, the objects are listed again. A failure is logged once,
 * and the next attempt waits 1 s, then 2 s, up to 30 s.
 */
#ifndef GRAFT_CLUSTER_CLUSTER_WATCH_H
#define GRAFT_CLUSTER_CLUSTER_WATCH_H

#include "cluster/cluster.h"
#include "formats/json/json_document.h"

#define GRAFT_CLUSTER_VERSION_SIZE 128 /* of a resourceVersion with its NUL */

enum graft_cluster_change {
	GRAFT_CLUSTER_ADDED,
	GRAFT_CLUSTER_MODIFIED,
	GRAFT_CLUSTER_DELETED,
	GRAFT_CLUSTER_BOOKMARK, /* not delivered */
	GRAFT_CLUSTER_ERROR,    /* not delivered */
};

struct graft_cluster_watch {
	/* Set by the caller, and borrowed. */
	const char *path;  /* of the collection: "/api/v1/nodes" */
	const char *query; /* "fieldSelector=metadata.name%3DNODE"; "": none */
	/*
	 * Called with all objects, first and whenever they had to be listed again: `list` has the
	 * array "items". Objects that are not in it have been deleted. Nodes live until the
	 * callback returns.
	 */
	void (*listed)(void *arg, const struct graft_json_node *list);
	/* Called for each change after that. Both callbacks may end the watch. */
	void (*changed)(void *arg, enum graft_cluster_change change, const struct graft_json_node *object);
	void *arg;

	/* The watch's own. */
	struct graft_cluster *cluster;
	struct graft_cluster_call *call;
	struct graft_loop *loop;
	const struct graft_log *log;
	struct graft_loop_timer again;
	struct graft_buffer line;                 /* an incomplete event */
	char version[GRAFT_CLUSTER_VERSION_SIZE]; /* from which to continue; "" = list */
	int64_t delay_ms;                         /* of the next attempt after a failure */
	int64_t began_ms;                         /* the stream */
	struct graft_error failure;               /* the last one that was logged; GRAFT_OK = all is well */
	bool ended;
};

/*
 * Begins to list. `watch` must not move until graft_cluster_watch_end(). Cannot fail: failures are
 * retried.
 */
void graft_cluster_watch_begin(struct graft_cluster *cluster, struct graft_cluster_watch *watch);
/* Ends it. Does nothing if it has not begun. */
void graft_cluster_watch_end(struct graft_cluster_watch *watch);

/* A line of the stream. */
struct graft_cluster_event {
	enum graft_cluster_change change;
	const struct graft_json_node *object;
	char version[GRAFT_CLUSTER_VERSION_SIZE]; /* of the object; "" for an ERROR */
	int status;                               /* of an ERROR: its code */
};
/*
 * Parses one. The document, which is the caller's to free, has the nodes. Returns 0, or -1 with
 * GRAFT_FORMAT, GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_cluster_event_parse(const char *text, size_t length, struct graft_json_document **ret_document,
			      struct graft_cluster_event *ret_event, struct graft_error *err);

#endif
