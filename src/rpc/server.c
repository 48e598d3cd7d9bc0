/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server: sockets and connections. call.c handles the data of a connection; the table of methods
 * knows what they mean.
 */
#include "rpc/server.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "rpc/call.h"
#include "rpc/listener.h"
#include "rpc/unix_socket.h"

#define DEFAULT_CONNECTIONS   16
#define DEFAULT_STREAMS       32
#define DEFAULT_REQUEST_LIMIT 10000

struct graft_rpc_server {
	struct graft_loop *loop;
	struct graft_rpc_server_options options;
	struct graft_unix_socket socket;
	struct graft_listener listener;
	struct graft_rpc_connection *connections; /* the oldest first */
	size_t n_connections;
};

struct graft_rpc_server *graft_rpc_server_new(struct graft_loop *loop, const struct graft_rpc_server_options *options)
{
	struct graft_rpc_server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->loop = loop;
	server->options = *options;
	server->socket = (struct graft_unix_socket)GRAFT_UNIX_SOCKET_INIT;
	if (server->options.max_connections == 0)
		server->options.max_connections = DEFAULT_CONNECTIONS;
	if (server->options.max_streams == 0)
		server->options.max_streams = DEFAULT_STREAMS;
	if (server->options.answer_limit_ms == 0)
		server->options.answer_limit_ms = GRAFT_RPC_STALL_MS;
	if (server->options.request_limit_ms == 0)
		server->options.request_limit_ms = DEFAULT_REQUEST_LIMIT;
	return server;
}

static void drop_connection(struct graft_rpc_server *server, struct graft_rpc_connection *connection)
{
	struct graft_rpc_connection **link = &server->connections;

	while (*link != connection)
		link = &(*link)->next;
	*link = connection->next;
	server->n_connections--;
	graft_rpc_connection_free(connection);
}

static void connection_ended(void *owner, struct graft_rpc_connection *connection)
{
	drop_connection(owner, connection);
}

void graft_rpc_server_free(struct graft_rpc_server *server)
{
	if (!server)
		return;
	graft_listener_end(&server->listener);
	graft_unix_close(&server->socket);
	while (server->connections)
		drop_connection(server, server->connections);
	free(server);
}

/* Makes room for one more connection. Returns false if there is none. */
static bool make_room(struct graft_rpc_server *server)
{
	if (server->n_connections < server->options.max_connections)
		return true;
	for (struct graft_rpc_connection *c = server->connections; c; c = c->next) {
		if (!c->calls) {
			drop_connection(server, c);
			return true;
		}
	}
	return false;
}

int graft_rpc_server_adopt(struct graft_rpc_server *server, int take_fd, struct graft_error *err)
{
	struct graft_rpc_connection **end = &server->connections;
	struct graft_rpc_connection *connection;

	if (!make_room(server)) {
		(void)close(take_fd);
		return graft_fail(err, GRAFT_TOO_BIG, 0, "too many connections: %zu", server->n_connections);
	}
	connection = graft_rpc_connection_new(server->loop, &server->options, take_fd, connection_ended, server, err);
	if (!connection)
		return -1;
	while (*end)
		end = &(*end)->next;
	*end = connection;
	server->n_connections++;
	return 0;
}

static void adopt_accepted(void *arg, int take_fd)
{
	(void)graft_rpc_server_adopt(arg, take_fd, NULL);
}

int graft_rpc_server_listen(struct graft_rpc_server *server, const char *path, struct graft_error *err)
{
	graft_listener_end(&server->listener);
	graft_unix_close(&server->socket);
	if (graft_unix_listen(path, &server->socket, err) < 0)
		return -1;
	if (graft_listener_begin(&server->listener, server->loop, server->socket.fd, adopt_accepted, server, err) < 0) {
		graft_unix_close(&server->socket);
		return -1;
	}
	return 0;
}

bool graft_rpc_server_is_there(const struct graft_rpc_server *server)
{
	return graft_unix_is_there(&server->socket);
}

bool graft_rpc_server_is_replaced(const struct graft_rpc_server *server)
{
	return graft_unix_is_replaced(&server->socket);
}

size_t graft_rpc_server_connections(const struct graft_rpc_server *server)
{
	return server->n_connections;
}
