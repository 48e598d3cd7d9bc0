/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: answers GET requests for monitoring, one per connection. Limits what clients can use:
 * HTTP_CONNECTIONS at a time, one page per request, HTTP_LIMIT_MS for all of it.
 */
#ifndef GRAFT_DAEMON_HTTP_H
#define GRAFT_DAEMON_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "rpc/listener.h"
#include "rpc/loop.h"
#include "rpc/unix_socket.h"

#define HTTP_CONNECTIONS 8
#define HTTP_REQUEST     4096
#define HTTP_PIECES      64 /* that a request may come in */
#define HTTP_LIMIT_MS    5000

struct http_server;

struct http_connection {
	struct http_server *server;
	struct graft_loop_watch watch; /* fd -1: free */
	struct graft_loop_timer limit;
	char request[HTTP_REQUEST];
	size_t n_request, n_pieces;
	struct graft_buffer answer;
	size_t sent;
};

struct http_server {
	struct graft_loop *loop;
	struct graft_unix_socket unix_socket; /* or, without a path, a TCP socket */
	struct graft_listener listener;
	struct http_connection connections[HTTP_CONNECTIONS];
	/* Appends the page at `path` and returns the status of HTTP: 200, 404, 503. */
	int (*page)(void *arg, const char *path, struct graft_buffer *body);
	void *arg;
};

/*
 * Listens at `address`: a path with a slash, "PORT" or "ADDRESS:PORT" with a numeric address, IPv6
 * in brackets. `server` must not move afterwards. Returns 0, or -1 with GRAFT_INVALID or the error
 * of listening; then there is nothing to release.
 */
int http_begin(struct http_server *server, struct graft_loop *loop, const char *address,
	       int (*page)(void *arg, const char *path, struct graft_buffer *body), void *arg, struct graft_error *err);
/* Closes everything. Does nothing if the server has not begun. */
void http_done(struct http_server *server);

#endif
