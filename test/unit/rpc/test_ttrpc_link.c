/* SPDX-License-Identifier: Apache-2.0 */
/* ttrpc_link: the other end of a socket pair plays the engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "rpc/ttrpc_link.h"
#include <nri.pb-c.h>
#include <ttrpc.pb-c.h>

#define SERVICE       "nri.pkg.api.v1alpha1.Plugin"
#define TIME_LIMIT_MS 10000

struct link_world {
	struct graft_loop loop;
	struct graft_ttrpc_link link;
	struct graft_ttrpc_link_options options;
	int engine; /* its end */
	bool ended, done;
	char why[256], done_text[64];
	enum graft_rpc_status done_status;
	uint32_t later; /* stream of the call that is answered later */
	size_t answer_size;
	/* What the engine has got. */
	struct graft_mux_reader mux;
	struct graft_ttrpc_collector collectors[3];
	size_t n_messages;
	struct graft_ttrpc_message last;
	uint8_t *data;
};

static void serve_create(void *service, struct graft_ttrpc_call *call)
{
	struct link_world *world = service;
	const Nri__Pkg__Api__V1alpha1__CreateContainerRequest *request = (const void *)call->message;
	Nri__Pkg__Api__V1alpha1__Mount mount, *mounts[] = { &mount };
	Nri__Pkg__Api__V1alpha1__ContainerAdjustment adjust = NRI__PKG__API__V1ALPHA1__CONTAINER_ADJUSTMENT__INIT;
	Nri__Pkg__Api__V1alpha1__CreateContainerResponse answer =
	    NRI__PKG__API__V1ALPHA1__CREATE_CONTAINER_RESPONSE__INIT;
	const char *name = request->container ? request->container->name : "";

	nri__pkg__api__v1alpha1__mount__init(&mount);
	if (strcmp(name, "refused") == 0) {
		graft_ttrpc_link_refuse(&world->link, call->stream, GRAFT_RPC_UNKNOWN, "it may not");
		return;
	}
	if (strcmp(name, "later") == 0) {
		world->later = call->stream;
		return;
	}
	mount.destination = malloc(world->answer_size + 1);
	assert_non_null(mount.destination);
	memset(mount.destination, 'm', world->answer_size);
	mount.destination[world->answer_size] = '\0';
	adjust.n_mounts = 1;
	adjust.mounts = mounts;
	answer.adjust = &adjust;
	graft_ttrpc_link_reply(&world->link, call->stream, &answer.base);
	free(mount.destination);
}

static const struct graft_ttrpc_method methods[] = {
	{ "CreateContainer", &nri__pkg__api__v1alpha1__create_container_request__descriptor, serve_create },
};
static const Nri__Pkg__Api__V1alpha1__Empty empty_answer = NRI__PKG__API__V1ALPHA1__EMPTY__INIT;

static void link_ended(void *arg, const struct graft_error *why)
{
	struct link_world *world = arg;

	world->ended = true;
	(void)graft_error_text(why, world->why, sizeof(world->why));
}

static int setup_link(void **state)
{
	struct link_world *world = calloc(1, sizeof(*world));
	int fds[2];

	assert_non_null(world);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	world->engine = fds[1];
	world->answer_size = 10;
	world->options = (struct graft_ttrpc_link_options){ .service = SERVICE,
							    .methods = methods,
							    .n_methods = GRAFT_COUNT(methods),
							    .empty = &empty_answer.base,
							    .arg = world,
							    .ended = link_ended };
	assert_int_equal(graft_ttrpc_link_begin(&world->link, &world->loop, fds[0], &world->options, NULL), 0);
	*state = world;
	return 0;
}

static int teardown_link(void **state)
{
	struct link_world *world = *state;

	graft_ttrpc_link_done(&world->link);
	graft_loop_done(&world->loop);
	for (size_t i = 0; i < 3; i++)
		graft_ttrpc_collector_done(&world->collectors[i]);
	free(world->data);
	(void)close(world->engine);
	free(world);
	return 0;
}

/* --- the engine --- */

static int engine_takes(void *arg, const struct graft_ttrpc_message *message, struct graft_error *err)
{
	struct link_world *world = arg;

	world->n_messages++;
	free(world->data);
	world->data = malloc(message->n + 1);
	assert_non_null(world->data);
	memcpy(world->data, message->data, message->n);
	world->last = *message;
	return 0;
}

static int engine_takes_stream(void *arg, uint32_t stream, const uint8_t *bytes, size_t n, struct graft_error *err)
{
	struct link_world *world = arg;

	assert_true(stream == GRAFT_LINK_SERVED || stream == GRAFT_LINK_CALLED);
	return graft_ttrpc_collect(&world->collectors[stream], bytes, n, engine_takes, world, err);
}

static void engine_reads(struct link_world *world)
{
	uint8_t bytes[5000];
	ssize_t n;

	while ((n = recv(world->engine, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		assert_int_equal(graft_mux_read(&world->mux, bytes, (size_t)n, engine_takes_stream, world, NULL), 0);
}

static void turn_until_messages(struct link_world *world, size_t n)
{
	int64_t end = graft_clock_ms() + TIME_LIMIT_MS;

	while (world->n_messages < n && !world->ended) {
		assert_true(graft_clock_ms() < end);
		assert_int_equal(graft_loop_turn(&world->loop, 50, NULL), 0);
		engine_reads(world);
	}
}

static void turn_until_end(struct link_world *world)
{
	int64_t end = graft_clock_ms() + TIME_LIMIT_MS;

	while (!world->ended) {
		assert_true(graft_clock_ms() < end);
		assert_int_equal(graft_loop_turn(&world->loop, 50, NULL), 0);
	}
}

static void engine_sends(struct link_world *world, const void *bytes, size_t n)
{
	assert_int_equal(send(world->engine, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void engine_calls(struct link_world *world, uint32_t stream, const char *service, const char *method,
			 const ProtobufCMessage *message)
{
	struct graft_buffer bytes = { .max = 0 }, frames = { .max = 0 };

	assert_int_equal(graft_ttrpc_write_request(&bytes, stream, service, method, message, NULL), 0);
	graft_mux_write(&frames, GRAFT_LINK_SERVED, bytes.bytes, bytes.length);
	engine_sends(world, frames.bytes, frames.length);
	graft_buffer_done(&bytes);
	graft_buffer_done(&frames);
}

static void engine_creates(struct link_world *world, uint32_t stream, const char *name)
{
	Nri__Pkg__Api__V1alpha1__Container container;
	Nri__Pkg__Api__V1alpha1__CreateContainerRequest request =
	    NRI__PKG__API__V1ALPHA1__CREATE_CONTAINER_REQUEST__INIT;

	nri__pkg__api__v1alpha1__container__init(&container);
	container.name = (char *)(uintptr_t)name;
	request.container = &container;
	engine_calls(world, stream, SERVICE, "CreateContainer", &request.base);
}

/* The status of the last answer, and its text. */
static int32_t last_status(const struct link_world *world, char *text, size_t size)
{
	Graft__Ttrpc__Response *response = graft__ttrpc__response__unpack(NULL, world->last.n, world->data);
	int32_t status;

	assert_non_null(response);
	assert_int_equal(world->last.type, GRAFT_TTRPC_RESPONSE);
	status = response->status ? response->status->code : 0;
	(void)snprintf(text, size, "%s", response->status ? response->status->message : "");
	graft__ttrpc__response__free_unpacked(response, NULL);
	return status;
}

/* --- tests --- */

static void test_answers(void **state)
{
	struct link_world *world = *state;
	char text[128];

	engine_creates(world, 1, "plain");
	turn_until_messages(world, 1);
	assert_int_equal(last_status(world, text, sizeof(text)), 0);
	assert_int_equal(world->last.stream, 1);
	engine_creates(world, 3, "refused");
	turn_until_messages(world, 2);
	assert_int_equal(last_status(world, text, sizeof(text)), GRAFT_RPC_UNKNOWN);
	assert_string_equal(text, "it may not");
	/* Methods of newer engines are answered, and change nothing. */
	engine_calls(world, 5, SERVICE, "ValidateContainerAdjustment", &empty_answer.base);
	turn_until_messages(world, 3);
	assert_int_equal(last_status(world, text, sizeof(text)), 0);
	engine_calls(world, 7, "another.Service", "CreateContainer", &empty_answer.base);
	turn_until_messages(world, 4);
	assert_int_equal(last_status(world, text, sizeof(text)), GRAFT_RPC_UNIMPLEMENTED);
	assert_string_equal(text, "no such service");
}

static void test_answer_that_comes_later(void **state)
{
	struct link_world *world = *state;
	char text[128];

	engine_creates(world, 1, "later");
	engine_creates(world, 3, "plain");
	turn_until_messages(world, 1);
	assert_int_equal(world->last.stream, 3);
	assert_int_equal(world->later, 1);
	graft_ttrpc_link_refuse(&world->link, world->later, GRAFT_RPC_DEADLINE_EXCEEDED, "too late");
	turn_until_messages(world, 2);
	assert_int_equal(world->last.stream, 1);
	assert_int_equal(last_status(world, text, sizeof(text)), GRAFT_RPC_DEADLINE_EXCEEDED);
}

static void test_large_answers_of_a_peer_that_reads_late(void **state)
{
	struct link_world *world = *state;
	char text[128];

	world->answer_size = (size_t)2 << 20;
	for (uint32_t i = 0; i < 4; i++) {
		engine_creates(world, 2 * i + 1, "plain");
		assert_int_equal(graft_loop_turn(&world->loop, 50, NULL), 0);
	}
	turn_until_messages(world, 4);
	assert_int_equal(world->n_messages, 4);
	assert_int_equal(last_status(world, text, sizeof(text)), 0);
	assert_true(world->last.n > ((size_t)2 << 20));
	assert_false(world->ended);
}

/* SPEC installer-and-nri 11: a reader never stops, even if its own answers are not read. */
static void test_peer_that_never_reads(void **state)
{
	struct link_world *world = *state;

	world->answer_size = (size_t)3 << 20;
	for (uint32_t i = 0; i < 20 && !world->ended; i++) {
		engine_creates(world, 2 * i + 1, "plain");
		assert_int_equal(graft_loop_turn(&world->loop, 50, NULL), 0);
	}
	turn_until_end(world);
	assert_string_equal(world->why, "the engine does not read its answers");
}

static void test_message_that_is_too_large(void **state)
{
	struct link_world *world = *state;
	char text[128];

	world->answer_size = (size_t)5 << 20;
	engine_creates(world, 1, "plain");
	turn_until_messages(world, 1);
	assert_int_equal(last_status(world, text, sizeof(text)), GRAFT_RPC_INTERNAL);
	assert_non_null(strstr(text, "is larger than 4 MiB"));
}

static void register_done(void *arg, enum graft_rpc_status status, const char *text)
{
	struct link_world *world = arg;

	world->done = true;
	world->done_status = status;
	(void)snprintf(world->done_text, sizeof(world->done_text), "%s", text);
}

static void test_call(void **state)
{
	static const int32_t statuses[] = { 0, 3 };
	struct link_world *world = *state;
	Nri__Pkg__Api__V1alpha1__RegisterPluginRequest message;

	nri__pkg__api__v1alpha1__register_plugin_request__init(&message);
	for (size_t i = 0; i < GRAFT_COUNT(statuses); i++) {
		struct graft_buffer bytes = { .max = 0 }, frames = { .max = 0 };
		int64_t end = graft_clock_ms() + TIME_LIMIT_MS;

		world->done = false;
		assert_int_equal(graft_ttrpc_link_call(&world->link, "nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin",
						       &message.base, register_done, NULL),
				 0);
		turn_until_messages(world, i + 1);
		assert_int_equal(world->last.stream, 2 * i + 1);
		/* An answer to nothing is none. */
		assert_int_equal(graft_ttrpc_write_response(&bytes, 99, &empty_answer.base, 0, NULL, NULL), 0);
		assert_int_equal(graft_ttrpc_write_response(&bytes, world->last.stream,
							    statuses[i] == 0 ? &empty_answer.base : NULL, statuses[i],
							    "bad name", NULL),
				 0);
		graft_mux_write(&frames, GRAFT_LINK_CALLED, bytes.bytes, bytes.length);
		engine_sends(world, frames.bytes, frames.length);
		graft_buffer_done(&bytes);
		graft_buffer_done(&frames);
		while (!world->done) {
			assert_true(graft_clock_ms() < end);
			assert_int_equal(graft_loop_turn(&world->loop, 50, NULL), 0);
		}
		assert_int_equal(world->done_status, statuses[i]);
		assert_string_equal(world->done_text, statuses[i] == 0 ? "" : "bad name");
	}
}

static void test_broken_peers(void **state)
{
	static const struct {
		const char *name, *bytes;
		size_t n;
		const char *why;
	} rows[] = {
		{ "a frame that is too long", "\0\0\0\1\377\0\0\0", 8, "a frame of 4278190080 bytes is too large" },
		{ "a message that is too long", "\0\0\0\1\0\0\0\12\377\0\0\0\0\0\0\1\1\0", 18,
		  "a message of 4278190080 bytes is too large" },
		{ "the end", "", 0, "the engine has closed the connection" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct link_world *world;

		print_message("# %s\n", rows[i].name);
		assert_int_equal(teardown_link(state), 0);
		assert_int_equal(setup_link(state), 0);
		world = *state;
		if (rows[i].n > 0)
			engine_sends(world, rows[i].bytes, rows[i].n);
		else
			(void)shutdown(world->engine, SHUT_RDWR);
		turn_until_end(world);
		assert_string_equal(world->why, rows[i].why);
	}
}

static void test_malformed_request(void **state)
{
	/* Not a request; and a stream that nobody knows. */
	static const char bytes[] = "\0\0\0\1\0\0\0\14\0\0\0\2\0\0\0\1\1\0\377\377\0\0\0\11\0\0\0\3abc";
	struct link_world *world = *state;
	char text[128];

	engine_sends(world, bytes, sizeof(bytes) - 1);
	turn_until_messages(world, 1);
	assert_int_equal(last_status(world, text, sizeof(text)), GRAFT_RPC_INVALID_ARGUMENT);
	assert_string_equal(text, "the request is malformed");
	assert_false(world->ended);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_link, teardown_link)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers),
		TEST(test_answer_that_comes_later),
		TEST(test_large_answers_of_a_peer_that_reads_late),
		TEST(test_peer_that_never_reads),
		TEST(test_message_that_is_too_large),
		TEST(test_call),
		TEST(test_broken_peers),
		TEST(test_malformed_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
