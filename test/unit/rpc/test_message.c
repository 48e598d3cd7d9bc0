/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "rpc/message.h"
#include <device_plugin.pb-c.h>

#define HEAD(length) "\0\0\0\0" length

static const struct {
	const char *name, *bytes;
	size_t n;
	enum graft_rpc_status status;
	bool complete;
	const char *text;
} streams[] = {
	{ "an empty message", HEAD("\0"), 5, GRAFT_RPC_OK, true, "" },
	{ "a message", HEAD("\2ab"), 7, GRAFT_RPC_OK, true, "" },
	{ "half a prefix", HEAD("\2"), 4, GRAFT_RPC_OK, false, "" },
	{ "half a message", HEAD("\3ab"), 7, GRAFT_RPC_OK, false, "" },
	{ "nothing", "", 0, GRAFT_RPC_OK, false, "" },
	{ "two messages", HEAD("\1aX"), 7, GRAFT_RPC_INTERNAL, true, "more than one message in a call that has one" },
	{ "a compressed one", "\1\0\0\0\1a", 6, GRAFT_RPC_UNIMPLEMENTED, false,
	  "compressed messages are not supported" },
	{ "one byte too many", "\0\0\100\0\1", 5, GRAFT_RPC_RESOURCE_EXHAUSTED, false,
	  "a message of 4194305 bytes is larger than 4 MiB" },
	{ "the largest length", "\0\377\377\377\377a", 6, GRAFT_RPC_RESOURCE_EXHAUSTED, false,
	  "a message of 4294967295 bytes is larger than 4 MiB" },
	{ "exactly 4 MiB are announced", "\0\0\100\0\0", 5, GRAFT_RPC_OK, false, "" },
};

/* The same, whole and byte by byte. */
static void test_collect(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(streams) * 2; i++) {
		size_t row = i / 2, step = i % 2 == 0 ? streams[row].n : 1;
		struct graft_rpc_collector collector = { 0 };
		enum graft_rpc_status status = GRAFT_RPC_OK;
		const char *text = "";

		print_message("# %s\n", streams[row].name);
		for (size_t at = 0; at < streams[row].n && status == GRAFT_RPC_OK; at += step)
			status = graft_rpc_collect(&collector, (const uint8_t *)streams[row].bytes + at, step, &text);
		assert_int_equal(status, streams[row].status);
		assert_string_equal(text, streams[row].text);
		if (status == GRAFT_RPC_OK)
			assert_int_equal(graft_rpc_is_collected(&collector), streams[row].complete);
		graft_rpc_collector_done(&collector);
	}
}

static void test_round_trip(void **state)
{
	V1beta1__RegisterRequest request;
	struct graft_arena *arena = graft_arena_new(4096);
	struct graft_rpc_collector collector = { 0 };
	const V1beta1__RegisterRequest *back;
	const char *text = NULL;
	auto_free uint8_t *bytes = NULL;
	size_t n = 0;

	v1beta1__register_request__init(&request);
	request.version = (char *)(uintptr_t) "v1beta1";
	request.resource_name = (char *)(uintptr_t) "nvidia.com/gpu";
	assert_int_equal(graft_rpc_encode(&request.base, &bytes, &n, NULL), 0);
	/* 1: version, 3: resource_name */
	assert_int_equal(n, 5 + 9 + 16);
	assert_memory_equal(bytes, "\0\0\0\0\x19\x0a\7v1beta1\x1a\x0envidia.com/gpu", n);
	assert_int_equal(graft_rpc_collect(&collector, bytes, n, &text), GRAFT_RPC_OK);
	back = (const V1beta1__RegisterRequest *)graft_rpc_decode(&v1beta1__register_request__descriptor,
								  graft_buffer_text(&collector.message),
								  collector.message.length, arena);
	assert_non_null(back);
	assert_string_equal(back->version, "v1beta1");
	assert_string_equal(back->endpoint, "");
	assert_string_equal(back->resource_name, "nvidia.com/gpu");
	assert_null(back->options);
	graft_rpc_collector_done(&collector);
	(void)graft_arena_free(arena);
}

static void test_encode_too_big(void **state)
{
	V1beta1__CDIDevice device;
	auto_free char *name = malloc(GRAFT_RPC_MAX_MESSAGE + 1);
	struct graft_error err = { .status = GRAFT_OK };
	uint8_t *bytes = NULL;
	size_t n = 0;

	assert_non_null(name);
	v1beta1__cdidevice__init(&device);
	memset(name, 'x', GRAFT_RPC_MAX_MESSAGE);
	name[GRAFT_RPC_MAX_MESSAGE] = '\0';
	device.name = name;
	assert_int_equal(graft_rpc_encode(&device.base, &bytes, &n, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, "a message of 4194309 bytes is larger than 4 MiB");
	assert_null(bytes);
}

/* SECURITY: two bytes a message, a hundred in memory: the arena is the bound. */
static void test_decode_bounded(void **state)
{
	struct graft_rpc_collector collector = { .n_prefix = 5 };
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);

	for (int i = 0; i < 100000; i++)
		graft_buffer_add(&collector.message, "\x0a\0", 2);
	assert_null(graft_rpc_decode(&v1beta1__allocate_request__descriptor, graft_buffer_text(&collector.message),
				     collector.message.length, arena));
	assert_true(graft_arena_failed(arena));
	(void)graft_arena_free(arena);
	arena = graft_arena_new((size_t)1 << 20);
	collector.message.length = 1;
	assert_null(graft_rpc_decode(&v1beta1__allocate_request__descriptor, graft_buffer_text(&collector.message),
				     collector.message.length, arena));
	assert_false(graft_arena_failed(arena));
	(void)graft_arena_free(arena);
	graft_rpc_collector_done(&collector);
}

static const struct {
	const char *text, *value;
} texts[] = {
	{ "unknown device: GPU-1", "unknown device: GPU-1" },
	{ "100 %", "100 %25" },
	{ "a\nb\x7f", "a%0Ab%7F" },
	{ "caf\xc3\xa9", "caf%C3%A9" },
	{ "", "" },
};

static void test_texts(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		struct graft_buffer value = { 0 }, text = { 0 };

		graft_rpc_escape(&value, texts[i].text);
		assert_string_equal(graft_buffer_text(&value), texts[i].value);
		graft_rpc_unescape(&text, texts[i].value, strlen(texts[i].value));
		assert_string_equal(graft_buffer_text(&text), texts[i].text);
		graft_buffer_done(&value);
		graft_buffer_done(&text);
	}
}

static void test_wrong_texts(void **state)
{
	static const char *const rows[][2] = { { "%", "%" },   { "%4", "%4" },   { "%zz%41", "%zzA" },
					       { "%6", "%6" }, { "a%00b", "a" }, { "%c3%a9", "\xc3\xa9" } };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_buffer text = { 0 };

		graft_rpc_unescape(&text, rows[i][0], strlen(rows[i][0]));
		assert_string_equal(graft_buffer_text(&text), rows[i][1]);
		graft_buffer_done(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collect),        cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_encode_too_big), cmocka_unit_test(test_decode_bounded),
		cmocka_unit_test(test_texts),          cmocka_unit_test(test_wrong_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
