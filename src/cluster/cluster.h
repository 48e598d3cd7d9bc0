/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster: requests to the API server of Kubernetes, in a daemon's loop: nothing blocks, and
 * answers arrive through callbacks.
 *
 *	struct graft_cluster *cluster;
 *	const struct graft_cluster_sources sources = { .loop = &loop, .log = log, .kubeconfig = "", .variable = variable };
 *	const struct graft_cluster_request request = { .method = "GET", .path = "/api/v1/nodes/a", .answered = answered };
 *
 *	if (graft_cluster_open(&sources, &cluster, err) < 0 || !graft_cluster_send(cluster, &request, err))
 *		return -1;
 *	...
 *	graft_cluster_close(cluster);
 *
 * Speaks HTTP/1.1 over TLS, through libcurl. Connections are kept and reused. Redirections are not
 * followed. The proxy is that of the kubeconfig, otherwise of HTTPS_PROXY and NO_PROXY. A thread of
 * libcurl looks up the server's name, so that the loop continues meanwhile.
 *
 * cluster_watch.h lists objects, and follows their changes.
 */
#ifndef GRAFT_CLUSTER_CLUSTER_H
#define GRAFT_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "rpc/loop.h"

/* Default limits of a request. */
#define GRAFT_CLUSTER_BODY_MAX   ((size_t)8 << 20)
#define GRAFT_CLUSTER_TIMEOUT_MS 30000

struct graft_cluster;      /* an API server */
struct graft_cluster_call; /* a request that is not answered yet */

struct graft_cluster_sources {
	struct graft_loop *loop;                   /* borrowed, as the log */
	const struct graft_log *log;               /* may be NULL */
	const char *kubeconfig;                    /* path; empty: use the pod's service account */
	const char *account;                       /* its directory; NULL: GRAFT_CLUSTER_ACCOUNT */
	const char *(*variable)(const char *name); /* the environment */
	/*
	 * At most `burst` requests at once, and `per_second` of them in the long run; others wait
	 * for their turn. `per_second` <= 0: no limit.
	 */
	double per_second;
	int burst;
};

/* Only valid while it is delivered. */
struct graft_cluster_answer {
	/*
	 * NULL for a status of 2xx. Otherwise "GET URL: " and the message of the server's Status,
	 * or why there is no answer. Statuses: GRAFT_PERMISSION (401, 403), GRAFT_NOT_FOUND (404,
	 * 410), GRAFT_INVALID (other 4xx), GRAFT_TIMEOUT, GRAFT_TOO_BIG, GRAFT_IO.
	 */
	const struct graft_error *err;
	int status;       /* of HTTP; 0: there is no answer, or an incomplete one */
	const char *body; /* followed by a NUL that is not included in the length */
	size_t length;
};

struct graft_cluster_request {
	const char *method; /* "GET", "POST", "PUT", "DELETE" */
	const char *path;   /* with the query; parts that users chose are escaped with graft_cluster_escape() */
	const char *body;   /* JSON; copied; NULL: none */
	size_t length;      /* of the body */
	int timeout_ms;     /* for all of it; 0: GRAFT_CLUSTER_TIMEOUT_MS */
	size_t max;         /* bytes of an answer; 0: GRAFT_CLUSTER_BODY_MAX */
	/*
	 * Called once, after graft_cluster_send() has returned, unless the call is cancelled
	 * before. The call has ended by then. May send and cancel, but not close the cluster.
	 */
	void (*answered)(void *arg, const struct graft_cluster_answer *answer);
	/*
	 * If set, receives the bytes of a 2xx answer as they arrive, and `answered` gets none. May
	 * send and cancel as above, including this call. `max` applies to the bytes that wait for
	 * it.
	 */
	void (*received)(void *arg, const char *bytes, size_t n);
	void *arg;
};

/*
 * Reads how to reach the server, and loads libcurl; nothing is sent. Returns 0, or -1 with the
 * errors of graft_cluster_config_read() and graft_curl_load().
 */
int graft_cluster_open(const struct graft_cluster_sources *sources, struct graft_cluster **ret_cluster,
		       struct graft_error *err);
/* Cancels all calls, and frees everything. NULL is allowed. Do not call it from a callback. */
void graft_cluster_close(struct graft_cluster *cluster);
/* Returns the URL of the server, for messages. Lives as long as the cluster. */
const char *graft_cluster_server(const struct graft_cluster *cluster);

/* Returns its loop, and in *ret_log its log. */
struct graft_loop *graft_cluster_loop(const struct graft_cluster *cluster, const struct graft_log **ret_log);

/*
 * Sends a request, copying what it needs. Returns the call, which lives until it is answered or
 * cancelled; or NULL with GRAFT_NO_MEMORY, or the error of reading the token, which is read for
 * each request.
 */
struct graft_cluster_call *graft_cluster_send(struct graft_cluster *cluster,
					      const struct graft_cluster_request *request, struct graft_error *err);
/* Cancels a call; `answered` is not called. NULL is allowed. */
void graft_cluster_cancel(struct graft_cluster_call *call);

/*
 * Whether a failure is the one that was logged before. Numbers are not compared, since libcurl's
 * messages contain times, and those of the server contain versions of objects.
 */
bool graft_cluster_is_same_failure(const struct graft_error *before, const struct graft_error *now);

/* Appends text for one part of a path or query, escaping special characters. */
void graft_cluster_escape(struct graft_buffer *out, const char *text);

#endif
