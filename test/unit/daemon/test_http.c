/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/http.h"

#define HEAD(status, length)                                                                                       \
	"HTTP/1.1 " status "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: " length \
	"\r\nConnection: close\r\n\r\n"

static char directory[64], path[96];
static struct graft_loop loop;
static struct http_server server;

static int page(void *arg, const char *page_path, struct graft_buffer *body)
{
	if (strcmp(page_path, "/large") == 0) {
		for (int i = 0; i < 100000; i++)
			graft_buffer_string(body, "0123456");
		return 200;
	}
	graft_buffer_printf(body, "<%s>\n", page_path);
	return strcmp(page_path, "/a") == 0 ? 200 : 404;
}

static int open_server(void **state)
{
	(void)snprintf(directory, sizeof(directory), "/tmp/graft-http-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/metrics.sock", directory);
	return http_begin(&server, &loop, path, page, NULL, NULL);
}

static int close_server(void **state)
{
	http_done(&server);
	http_done(&server);
	graft_loop_done(&loop);
	return rmdir(directory);
}

/* Everything that comes until the server closes. */
static void ask_http(const char *request, size_t step, struct graft_buffer *answer)
{
	auto_close int fd = graft_unix_connect(path);
	int64_t end = graft_clock_ms() + 10000;
	size_t at = 0, length = strlen(request);
	char bytes[4096];
	ssize_t n = -1;

	assert_true(fd >= 0);
	while (n != 0 && graft_clock_ms() < end) {
		if (at < length) {
			size_t part = length - at < step ? length - at : step;

			at += send(fd, request + at, part, MSG_NOSIGNAL) > 0 ? part : length;
		}
		assert_int_equal(graft_loop_turn(&loop, 10, NULL), 0);
		n = recv(fd, bytes, sizeof(bytes), 0);
		if (n < 0 && errno != EAGAIN)
			break;
		if (n > 0)
			graft_buffer_add(answer, bytes, (size_t)n);
	}
}

static const struct {
	const char *request, *answer;
} rows[] = {
	{ "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", HEAD("200 OK", "5") "</a>\n" },
	{ "GET /a?b=c HTTP/1.0\r\n\r\n", HEAD("200 OK", "5") "</a>\n" },
	{ "GET /b HTTP/1.1\r\n\r\n", HEAD("404 Not Found", "5") "</b>\n" },
	{ "POST /a HTTP/1.1\r\n\r\n", HEAD("405 Method Not Allowed", "19") "Method Not Allowed\n" },
	{ "GET /a\r\n\r\n", HEAD("400 Bad Request", "12") "Bad Request\n" },
	{ "\r\n\r\n", HEAD("405 Method Not Allowed", "19") "Method Not Allowed\n" },
};

static void test_answers(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows) * 2; i++) {
		struct graft_buffer answer = { 0 };

		ask_http(rows[i / 2].request, i % 2 == 0 ? 1000 : 3, &answer);
		assert_string_equal(graft_buffer_text(&answer), rows[i / 2].answer);
		graft_buffer_done(&answer);
	}
}

static void test_large(void **state)
{
	struct graft_buffer answer = { 0 };

	ask_http("GET /large HTTP/1.1\r\n\r\n", 1000, &answer);
	assert_non_null(strstr(graft_buffer_text(&answer), "Content-Length: 700000\r\n"));
	assert_int_equal(strlen(strstr(graft_buffer_text(&answer), "\r\n\r\n")), 700004);
	graft_buffer_done(&answer);
}

/* A request without an end, more of them than there is room for: others are served when these are gone. */
static void test_bounds(void **state)
{
	struct graft_buffer answer = { 0 };
	char request[HTTP_REQUEST + 10];
	int fds[HTTP_CONNECTIONS];

	memset(request, 'x', sizeof(request) - 1);
	request[sizeof(request) - 1] = '\0';
	ask_http(request, 1000, &answer);
	assert_int_equal(answer.length, 0);
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++) {
		fds[i] = graft_unix_connect(path);
		assert_true(fds[i] >= 0);
		assert_int_equal(graft_loop_turn(&loop, 100, NULL), 0);
	}
	/* All places are taken by those who say nothing: the oldest one goes. */
	ask_http("GET /a HTTP/1.1\r\n\r\n", 1000, &answer);
	assert_string_equal(graft_buffer_text(&answer), HEAD("200 OK", "5") "</a>\n");
	graft_buffer_done(&answer);
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++) {
		assert_int_equal(recv(fds[i], request, sizeof(request), MSG_DONTWAIT), i == 0 ? 0 : -1);
		(void)close(fds[i]);
	}
	assert_int_equal(graft_loop_turn(&loop, 100, NULL), 0);
}

/* A flood: with a gap, so many are taken and no more, and the loop sleeps meanwhile. One that comes byte by byte ends. */
static void test_flood(void **state)
{
	static const char request[] = "GET /a HTTP/1.1\r\n\r\n";
	struct graft_buffer answer = { 0 };
	int fds[HTTP_CONNECTIONS], n = 0, turns = 0;
	int64_t end;

	server.listener.gap_ms = 100;
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++) {
		fds[i] = graft_unix_connect(path);
		assert_true(fds[i] >= 0);
		assert_int_equal(send(fds[i], request, sizeof(request) - 1, MSG_NOSIGNAL), sizeof(request) - 1);
	}
	end = graft_clock_ms() + 250;
	for (; graft_clock_ms() < end; turns++)
		assert_int_equal(graft_loop_turn(&loop, 10, NULL), 0);
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++) {
		char bytes[4096];

		n += recv(fds[i], bytes, sizeof(bytes), MSG_DONTWAIT) > 0;
		(void)close(fds[i]);
	}
	assert_in_range(n, 1, 3);
	assert_in_range(turns, 1, 60);
	server.listener.gap_ms = 0;
	end = graft_clock_ms() + 150;
	while (graft_clock_ms() < end)
		assert_int_equal(graft_loop_turn(&loop, 10, NULL), 0);
	ask_http(
	    "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
	    "HTTP/1.1",
	    1, &answer);
	assert_int_equal(answer.length, 0);
	graft_buffer_done(&answer);
}

/* Without a free descriptor a connection waits, and does not keep the loop busy. */
static void test_no_descriptors(void **state)
{
	struct graft_buffer answer = { 0 };
	struct rlimit before, none;
	int64_t began;
	int fd, first_free;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	fd = graft_unix_connect(path);
	first_free = dup(0);
	assert_true(fd >= 0 && first_free >= 0);
	(void)close(first_free);
	none = (struct rlimit){ .rlim_cur = (rlim_t)first_free, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(graft_loop_turn(&loop, 100, NULL), 0);
	began = graft_clock_ms();
	assert_int_equal(graft_loop_turn(&loop, 200, NULL), 0);
	assert_true(graft_clock_ms() - began >= 190);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	(void)close(fd);
	while (graft_clock_ms() - began < GRAFT_LISTENER_AGAIN_MS + 100)
		assert_int_equal(graft_loop_turn(&loop, 100, NULL), 0);
	ask_http("GET /a HTTP/1.1\r\n\r\n", 1000, &answer);
	assert_string_equal(graft_buffer_text(&answer), HEAD("200 OK", "5") "</a>\n");
	graft_buffer_done(&answer);
}

static void test_addresses(void **state)
{
	static const char *const wrong[] = { "65536",   "127.0.0.1:99999", "x", "localhost:80",
					     "1.2.3:x", "127.0.0.1:",      "" };
	static const char *const right[] = { "0", "127.0.0.1:0", "[::]:0", ":0" };
	struct http_server *other = calloc(1, sizeof(*other));
	struct graft_error err = { .status = GRAFT_OK };

	assert_non_null(other);
	for (size_t i = 0; i < GRAFT_COUNT(wrong); i++) {
		assert_int_equal(http_begin(other, &loop, wrong[i], page, NULL, &err), -1);
		assert_string_printed(err.msg, "'%s' is not an address; use PORT, ADDRESS:PORT or the path of a socket",
				      wrong[i]);
	}
	for (size_t i = 0; i < GRAFT_COUNT(right); i++) {
		if (http_begin(other, &loop, right[i], page, NULL, &err) == 0)
			http_done(other);
		else /* a machine without IPv6 */
			assert_int_equal(i, 2);
	}
	free(other);
}

/* Without an address it is all of them, of both kinds where the machine has both. */
static void test_all_addresses(void **state)
{
	struct http_server *other = calloc(1, sizeof(*other));
	struct sockaddr_in6 bound;
	socklen_t size = sizeof(bound);

	assert_non_null(other);
	assert_int_equal(http_begin(other, &loop, "0", page, NULL, NULL), 0);
	assert_int_equal(getsockname(other->listener.watch.fd, (struct sockaddr *)&bound, &size), 0);
	{
		const struct sockaddr_in v4 = { .sin_family = AF_INET,
						.sin_port = bound.sin6_port,
						.sin_addr = { htonl(INADDR_LOOPBACK) } };
		const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
						 .sin6_port = bound.sin6_port,
						 .sin6_addr = IN6ADDR_LOOPBACK_INIT };
		auto_close int fd4 = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		auto_close int fd6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

		assert_int_equal(connect(fd4, (const struct sockaddr *)&v4, sizeof(v4)), 0);
		if (fd6 >= 0 && connect(fd6, (const struct sockaddr *)&v6, sizeof(v6)) < 0)
			assert_int_equal(errno, EADDRNOTAVAIL); /* the kernel has IPv6, this machine has not */
	}
	http_done(other);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),        cmocka_unit_test(test_large),     cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_no_descriptors), cmocka_unit_test(test_addresses), cmocka_unit_test(test_flood),
		cmocka_unit_test(test_all_addresses),
	};

	return cmocka_run_group_tests(tests, open_server, close_server);
}
