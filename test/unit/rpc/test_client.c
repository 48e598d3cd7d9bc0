/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit.h"
#include "rpc/client.h"
#include "rpc/unix_socket.h"
#include "rpc_world.h"

struct outcome {
	int n;
	enum graft_rpc_status status;
	char text[128];
	size_t value; /* bytes of the answer's variable */
};

static void note_outcome(void *arg, enum graft_rpc_status status, const char *text, const ProtobufCMessage *message)
{
	const V1beta1__AllocateResponse *answer = (const V1beta1__AllocateResponse *)message;
	struct outcome *outcome = arg;

	outcome->n++;
	outcome->status = status;
	(void)snprintf(outcome->text, sizeof(outcome->text), "%s", text);
	if (answer && answer->n_container_responses > 0)
		outcome->value = strlen(answer->container_responses[0]->envs[0]->value);
}

static struct graft_rpc_client *ask(struct world *world, const char *method, const char *id, int64_t deadline_ms,
				    struct outcome *outcome, struct graft_error *err)
{
	char *ids[] = { (char *)(uintptr_t)id };
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *containers[] = { &container };
	V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;
	const struct graft_rpc_request call = { .socket = world->path,
						.method = method,
						.message = &request.base,
						.answer = &v1beta1__allocate_response__descriptor,
						.deadline_ms = deadline_ms,
						.done = note_outcome,
						.arg = outcome };

	*outcome = (struct outcome){ 0 };
	container.n_devices_ids = 1;
	container.devices_ids = ids;
	request.n_container_requests = 1;
	request.container_requests = containers;
	return graft_rpc_call(&world->loop, &call, err);
}

#define ALLOCATE "/v1beta1.DevicePlugin/Allocate"

static const struct {
	const char *method, *id;
	enum graft_rpc_status status;
	const char *text;
	size_t value;
} rows[] = {
	{ ALLOCATE, "3", GRAFT_RPC_OK, "", 3 },
	{ ALLOCATE, "0", GRAFT_RPC_OK, "", 0 },
	{ ALLOCATE, "4000000", GRAFT_RPC_OK, "", 4000000 },
	{ ALLOCATE, "4194304", GRAFT_RPC_RESOURCE_EXHAUSTED, "a message of 4194326 bytes is larger than 4 MiB", 0 },
	{ ALLOCATE, "fail 100 % wrong:\n\xc3\xa9", GRAFT_RPC_INVALID_ARGUMENT, "100 % wrong:\n\xc3\xa9", 0 },
	{ ALLOCATE, "mute", GRAFT_RPC_INTERNAL, "the method did not answer", 0 },
	{ "/v1beta1.DevicePlugin/Free", "1", GRAFT_RPC_UNIMPLEMENTED, "unknown method '/v1beta1.DevicePlugin/Free'",
	  0 },
};

static void test_calls(void **state)
{
	struct world world;
	struct outcome outcome;

	assert_true(world_open(&world, NULL));
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		print_message("# %s\n", rows[i].id);
		assert_non_null(ask(&world, rows[i].method, rows[i].id, WORLD_LIMIT_MS, &outcome, NULL));
		assert_int_equal(outcome.n, 0);
		assert_true(world_until(&world, outcome.n > 0));
		assert_int_equal(outcome.status, rows[i].status);
		assert_string_equal(outcome.text, rows[i].text);
		assert_int_equal(outcome.value, rows[i].value);
	}
	/* Each call of a known method is counted once; connections end with their calls. */
	assert_int_equal(world.n_served, GRAFT_COUNT(rows) - 1);
	assert_true(world_until(&world, graft_rpc_server_connections(world.server) == 0));
	world_close(&world);
}

/* Many at once, each with its own answer. */
static void test_many(void **state)
{
	struct outcome outcomes[12];
	struct world world;
	char id[16];

	assert_true(world_open(&world, NULL));
	for (size_t i = 0; i < GRAFT_COUNT(outcomes); i++) {
		(void)snprintf(id, sizeof(id), "%zu", i * 10007);
		assert_non_null(ask(&world, ALLOCATE, id, WORLD_LIMIT_MS, &outcomes[i], NULL));
	}
	for (size_t i = 0; i < GRAFT_COUNT(outcomes); i++) {
		assert_true(world_until(&world, outcomes[i].n > 0));
		assert_int_equal(outcomes[i].value, i * 10007);
	}
	world_close(&world);
}

/* Somebody who accepts and says nothing, and who says nonsense, and who hangs up. */
static void test_bad_servers(void **state)
{
	struct graft_unix_socket listener = GRAFT_UNIX_SOCKET_INIT;
	struct world world;
	struct outcome outcome;
	int fd;

	assert_true(world_open(&world, NULL));
	assert_int_equal(graft_unix_listen(world.path, &listener, NULL), 0);
	assert_non_null(ask(&world, ALLOCATE, "1", 100, &outcome, NULL));
	assert_true(world_until(&world, outcome.n > 0));
	assert_int_equal(outcome.status, GRAFT_RPC_DEADLINE_EXCEEDED);
	assert_string_equal(outcome.text, "no answer in time");
	(void)close(accept(listener.fd, NULL, NULL));

	assert_non_null(ask(&world, ALLOCATE, "1", WORLD_LIMIT_MS, &outcome, NULL));
	fd = accept(listener.fd, NULL, NULL);
	assert_int_equal(write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 28);
	assert_true(world_until(&world, outcome.n > 0));
	assert_int_equal(outcome.status, GRAFT_RPC_UNAVAILABLE);
	assert_string_equal(outcome.text, "the connection ended before the answer");
	(void)close(fd);

	assert_non_null(ask(&world, ALLOCATE, "1", WORLD_LIMIT_MS, &outcome, NULL));
	(void)close(accept(listener.fd, NULL, NULL));
	assert_true(world_until(&world, outcome.n > 0));
	assert_int_equal(outcome.status, GRAFT_RPC_UNAVAILABLE);
	graft_unix_close(&listener);
	world_close(&world);
}

/* An answer that is refused ends the call at once, not when its time is over, whatever status the server gives it. */
#define SETTINGS_AND_200     \
	"\0\0\0\4\0\0\0\0\0" \
	"\0\0\1\1\4\0\0\0\1\210"
#define STATUS_0                   \
	"\0\0\17\1\5\0\0\0\1\0\13" \
	"grpc-status"              \
	"\1"                       \
	"0"
#define REFUSED(answer) answer, sizeof(answer) - 1

static const struct {
	const char *answer;
	size_t n;
	enum graft_rpc_status status;
	const char *text;
} refused[] = {
	{ REFUSED(SETTINGS_AND_200 "\0\0\5\0\0\0\0\0\1\1\0\0\0\0"), GRAFT_RPC_UNIMPLEMENTED,
	  "cannot accept the answer: compressed messages are not supported" },
	{ REFUSED(SETTINGS_AND_200 "\0\0\5\0\0\0\0\0\1\0\0\100\0\1"), GRAFT_RPC_RESOURCE_EXHAUSTED,
	  "cannot accept the answer: a message of 4194305 bytes is larger than 4 MiB" },
	{ REFUSED(SETTINGS_AND_200 "\0\0\6\0\0\0\0\0\1\0\0\100\0\1x\0\0\1\0\0\0\0\0\1x" STATUS_0),
	  GRAFT_RPC_RESOURCE_EXHAUSTED, "cannot accept the answer: a message of 4194305 bytes is larger than 4 MiB" },
	{ REFUSED(SETTINGS_AND_200 "\0\0\6\0\0\0\0\0\1\0\0\0\0\0x" STATUS_0), GRAFT_RPC_INTERNAL,
	  "cannot accept the answer: more than one message in a call that has one" },
};

static void test_refused_answer(void **state)
{
	struct graft_unix_socket listener = GRAFT_UNIX_SOCKET_INIT;
	struct world world;
	struct outcome outcome;
	int64_t began;
	int fd;

	assert_true(world_open(&world, NULL));
	assert_int_equal(graft_unix_listen(world.path, &listener, NULL), 0);
	for (size_t i = 0; i < GRAFT_COUNT(refused); i++) {
		began = graft_clock_ms();
		assert_non_null(ask(&world, ALLOCATE, "1", WORLD_LIMIT_MS / 2, &outcome, NULL));
		fd = accept(listener.fd, NULL, NULL);
		assert_int_equal(write(fd, refused[i].answer, refused[i].n), refused[i].n);
		assert_true(world_until(&world, outcome.n > 0));
		assert_int_equal(outcome.status, refused[i].status);
		assert_string_equal(outcome.text, refused[i].text);
		assert_true(graft_clock_ms() - began < WORLD_LIMIT_MS / 2);
		(void)close(fd);
	}
	graft_unix_close(&listener);
	world_close(&world);
}

static void test_no_server(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct outcome outcome;
	struct world world;

	assert_true(world_open(&world, NULL));
	assert_int_equal(unlink(world.path), 0);
	assert_null(ask(&world, ALLOCATE, "1", 100, &outcome, &err));
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_string_printed(err.msg, "cannot connect to '%s'", world.path);
	assert_int_equal(outcome.n, 0);
	world_close(&world);
}

/* What is cancelled is never done. */
static void test_cancel(void **state)
{
	struct world world;
	struct outcome outcome;
	struct graft_rpc_client *client;

	assert_true(world_open(&world, NULL));
	client = ask(&world, ALLOCATE, "1", WORLD_LIMIT_MS, &outcome, NULL);
	assert_non_null(client);
	graft_rpc_cancel(client);
	graft_rpc_cancel(NULL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(graft_loop_turn(&world.loop, 10, NULL), 0);
	assert_int_equal(outcome.n, 0);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),       cmocka_unit_test(test_many),
		cmocka_unit_test(test_bad_servers), cmocka_unit_test(test_refused_answer),
		cmocka_unit_test(test_no_server),   cmocka_unit_test(test_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
