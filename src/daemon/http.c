/* SPDX-License-Identifier: Apache-2.0 */
/* http: the part of HTTP/1.1 that monitoring needs. Does not know the content of the pages. */
#include "daemon/http.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/strings.h"

static void close_connection(struct http_connection *c)
{
	graft_loop_close(c->server->loop, &c->watch);
	graft_loop_clear_timer(&c->limit);
	graft_buffer_done(&c->answer);
}

static void connection_too_slow(void *arg)
{
	close_connection(arg);
}

static const char *reason_of(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	default:
		return "Service Unavailable";
	}
}

/* The path of "GET PATH HTTP/1.x"; *ret_status is 200 if it is one. */
static const char *request_path(char *request, int *ret_status)
{
	char *path = request + 4, *end;

	*ret_status = graft_starts_with(request, "GET ") ? 200 : 405;
	if (*ret_status != 200)
		return NULL;
	end = path + strcspn(path, " \r\n");
	if (!graft_starts_with(end, " HTTP/1.")) {
		*ret_status = 400;
		return NULL;
	}
	*end = '\0';
	path[strcspn(path, "?")] = '\0';
	return path;
}

static void send_answer(struct http_connection *c)
{
	while (c->sent < c->answer.length) {
		ssize_t n = send(c->watch.fd, c->answer.bytes + c->sent, c->answer.length - c->sent, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			c->watch.events = POLLOUT;
			return;
		}
		if (n < 0)
			break;
		c->sent += (size_t)n;
	}
	close_connection(c);
}

static void make_answer(struct http_connection *c)
{
	struct graft_buffer body = { .max = (size_t)1 << 20 };
	int status;
	const char *path = request_path(c->request, &status);

	if (path)
		status = c->server->page(c->server->arg, path, &body);
	else
		graft_buffer_printf(&body, "%s\n", reason_of(status));
	if (graft_buffer_failed(&body))
		status = 503;
	graft_buffer_printf(&c->answer,
			    "HTTP/1.1 %d %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
			    "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			    status, reason_of(status), body.length);
	graft_buffer_string(&c->answer, graft_buffer_text(&body));
	graft_buffer_done(&body);
	send_answer(c);
}

static void connection_ready(void *arg, short events)
{
	struct http_connection *c = arg;
	ssize_t n;

	(void)events;
	if (c->answer.length > 0) {
		send_answer(c);
		return;
	}
	n = recv(c->watch.fd, c->request + c->n_request, sizeof(c->request) - 1 - c->n_request, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_connection(c);
		return;
	}
	c->n_request += (size_t)n;
	c->request[c->n_request] = '\0';
	if (strstr(c->request, "\r\n\r\n"))
		make_answer(c);
	else if (c->n_request == sizeof(c->request) - 1 || ++c->n_pieces == HTTP_PIECES)
		close_connection(c);
}

/*
 * Returns a free place. If there is none, closes the oldest connection, so that silent ones cannot
 * prevent an answer to /healthz.
 */
static struct http_connection *find_connection(struct http_server *server)
{
	struct http_connection *oldest = server->connections;

	for (size_t i = 0; i < HTTP_CONNECTIONS; i++) {
		struct http_connection *c = &server->connections[i];

		if (c->watch.fd < 0)
			return c;
		if (c->limit.at_ms < oldest->limit.at_ms)
			oldest = c;
	}
	close_connection(oldest);
	return oldest;
}

static void take_connection(void *arg, int take_fd)
{
	struct http_server *server = arg;
	auto_close int fd = take_fd;
	struct http_connection *c;

	c = find_connection(server);
	*c = (struct http_connection){ .server = server };
	c->watch = (struct graft_loop_watch){ .fd = fd, .events = POLLIN, .ready = connection_ready, .arg = c };
	c->limit = (struct graft_loop_timer){ .due = connection_too_slow, .arg = c };
	if (graft_loop_watch(server->loop, &c->watch, NULL) < 0) {
		c->watch.fd = -1;
		return;
	}
	(void)TAKE_FD(fd);
	graft_loop_set_timer(server->loop, &c->limit, HTTP_LIMIT_MS);
}

/* Splits "ADDRESS:PORT", "[ADDRESS]:PORT" or "PORT"; `host` is empty for the last. */
static int split_address(const char *address, char *host, size_t size, const char **ret_port)
{
	const char *colon = strrchr(address, ':');
	size_t length = colon ? (size_t)(colon - address) : 0;

	*ret_port = colon ? colon + 1 : address;
	if (length > 1 && address[0] == '[' && address[length - 1] == ']') {
		address++;
		length -= 2;
	}
	if (length >= size)
		return -1;
	memcpy(host, address, length);
	host[length] = '\0';
	return 0;
}

/*
 * Returns a listening socket, or -errno. An IPv6 socket for all addresses takes those of IPv4, too.
 */
static int listen_at(const struct addrinfo *place)
{
	auto_close int fd = socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1, off = 0;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    (place->ai_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
	    bind(fd, place->ai_addr, place->ai_addrlen) < 0 || listen(fd, HTTP_CONNECTIONS) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int listen_tcp(const char *address, struct graft_error *err)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	const char *port;
	char host[64];
	int fd;

	/* QUIRK: getaddrinfo() takes a larger number, too, and uses its last 16 bits. */
	if (split_address(address, host, sizeof(host), &port) < 0 || port[0] == '\0' ||
	    strtoul(port, NULL, 10) > UINT16_MAX ||
	    getaddrinfo(host[0] != '\0' ? host : "::", port, &hints, &found) != 0)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "'%s' is not an address; use PORT, ADDRESS:PORT or the path of a socket", address);
	fd = listen_at(found);
	freeaddrinfo(found);
	found = NULL;
	/* A kernel without IPv6. */
	if (fd == -EAFNOSUPPORT && host[0] == '\0' && getaddrinfo("0.0.0.0", port, &hints, &found) == 0) {
		fd = listen_at(found);
		freeaddrinfo(found);
	}
	return fd < 0 ? graft_fail_errno(err, -fd, "cannot listen at '%s'", address) : fd;
}

int http_begin(struct http_server *server, struct graft_loop *loop, const char *address,
	       int (*page)(void *arg, const char *path, struct graft_buffer *body), void *arg, struct graft_error *err)
{
	struct graft_unix_socket named = GRAFT_UNIX_SOCKET_INIT;

	if (strchr(address, '/') ? graft_unix_listen(address, &named, err) < 0
				 : (named.fd = listen_tcp(address, err)) < 0)
		return -1;
	*server = (struct http_server){ .loop = loop, .unix_socket = named, .page = page, .arg = arg };
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
		server->connections[i].watch.fd = -1;
	if (graft_listener_begin(&server->listener, loop, named.fd, take_connection, server, err) < 0) {
		http_done(server);
		return -1;
	}
	return 0;
}

void http_done(struct http_server *server)
{
	if (!server->loop)
		return;
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++) {
		if (server->connections[i].watch.fd >= 0)
			close_connection(&server->connections[i]);
	}
	graft_listener_end(&server->listener);
	graft_unix_close(&server->unix_socket);
	server->loop = NULL;
}
