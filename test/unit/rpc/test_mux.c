/* SPDX-License-Identifier: Apache-2.0 */
/* mux and ttrpc as bytes: what is written is read, in pieces of every size; what is too long is refused. */
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "rpc/message.h"
#include "rpc/mux.h"
#include "rpc/ttrpc.h"
#include <nri.pb-c.h>
#include <ttrpc.pb-c.h>

struct collected {
	struct graft_buffer streams[4];
	size_t n_calls;
	bool refuse;
};

static int collect_piece(void *arg, uint32_t stream, const uint8_t *bytes, size_t n, struct graft_error *err)
{
	struct collected *collected = arg;

	collected->n_calls++;
	if (collected->refuse)
		return graft_fail(err, GRAFT_INVALID, 0, "enough");
	graft_buffer_add(&collected->streams[stream % 4], bytes, n);
	return 0;
}

static void free_collected(struct collected *collected)
{
	for (size_t i = 0; i < 4; i++)
		graft_buffer_done(&collected->streams[i]);
}

static void test_frames_of_all_sizes(void **state)
{
	static const size_t sizes[] = { 1, 7, 8, 4095, 4096, 4097, 8192, 20480 };
	static char bytes[20480];

	memset(bytes, 'x', sizeof(bytes));
	for (size_t i = 0; i < GRAFT_COUNT(sizes); i++) {
		for (size_t step = 1; step < 30000; step = step * 7 + 1) {
			struct graft_buffer out = { .max = 0 };
			struct graft_mux_reader reader = { .n_header = 0 };
			struct collected collected = { .n_calls = 0 };

			graft_mux_write(&out, 1, bytes, sizes[i]);
			graft_mux_write(&out, 2, "abc", 3);
			assert_int_equal(out.length, sizes[i] + 3 + 8 * ((sizes[i] + 4095) / 4096 + 1));
			for (size_t at = 0; at < out.length; at += step)
				assert_int_equal(graft_mux_read(&reader, (uint8_t *)out.bytes + at,
								step < out.length - at ? step : out.length - at,
								collect_piece, &collected, NULL),
						 0);
			assert_int_equal(collected.streams[1].length, sizes[i]);
			assert_string_equal(graft_buffer_text(&collected.streams[2]), "abc");
			free_collected(&collected);
			graft_buffer_done(&out);
		}
	}
}

/* SPEC installer-and-nri 12: the engine reads into 4096 bytes. */
static void test_no_frame_is_longer_than_4096(void **state)
{
	static char bytes[50000];
	struct graft_buffer out = { .max = 0 };
	size_t at = 0, n = 0;

	graft_mux_write(&out, 1, bytes, sizeof(bytes));
	for (; at < out.length; n++) {
		uint32_t length = graft_mux_number((const uint8_t *)out.bytes + at + 4);

		assert_true(length > 0 && length <= 4096);
		at += 8 + length;
	}
	assert_int_equal(at, out.length);
	assert_int_equal(n, 13);
	graft_buffer_done(&out);
}

static void test_long_frames_are_read(void **state)
{
	static uint8_t frame[8 + 100000] = { 0, 0, 0, 1, 0, 1, 0x86, 0xa0 };
	const uint8_t too_long[8] = { 0, 0, 0, 1, 0, 0x40, 0x10, 1 };
	const uint8_t empty[8 + 8 + 1] = { 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 'a' };
	struct graft_mux_reader reader = { .n_header = 0 };
	struct collected collected = { .n_calls = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_mux_read(&reader, frame, sizeof(frame), collect_piece, &collected, &err), 0);
	assert_int_equal(collected.streams[1].length, 100000);
	assert_int_equal(graft_mux_read(&reader, empty, sizeof(empty), collect_piece, &collected, &err), 0);
	assert_string_equal(graft_buffer_text(&collected.streams[3]), "a");
	collected.refuse = true;
	assert_int_equal(graft_mux_read(&reader, empty, sizeof(empty), collect_piece, &collected, &err), -1);
	assert_string_equal(err.msg, "enough");
	reader = (struct graft_mux_reader){ .n_header = 0 };
	assert_int_equal(graft_mux_read(&reader, too_long, sizeof(too_long), collect_piece, &collected, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, "a frame of 4198401 bytes is too large");
	free_collected(&collected);
}

/* --- ttrpc --- */

struct taken {
	struct graft_ttrpc_message last;
	size_t n;
	char *payload;
};

static int take_message(void *arg, const struct graft_ttrpc_message *message, struct graft_error *err)
{
	struct taken *taken = arg;

	free(taken->payload);
	taken->last = *message;
	taken->n++;
	taken->payload = malloc(message->n + 1);
	assert_non_null(taken->payload);
	memcpy(taken->payload, message->data, message->n);
	return 0;
}

static void test_messages(void **state)
{
	Nri__Pkg__Api__V1alpha1__RegisterPluginRequest message;

	nri__pkg__api__v1alpha1__register_plugin_request__init(&message);
	message.plugin_name = (char *)(uintptr_t) "graft";
	message.plugin_idx = (char *)(uintptr_t) "10";
	for (size_t step = 1; step < 300; step += 13) {
		struct graft_buffer out = { .max = 0 };
		struct graft_ttrpc_collector collector = { .n_header = 0 };
		struct taken taken = { .n = 0 };
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		const Graft__Ttrpc__Request *request;
		const Graft__Ttrpc__Response *response;

		assert_int_equal(graft_ttrpc_write_request(&out, 1, "a.Service", "Method", &message.base, NULL), 0);
		assert_int_equal(graft_ttrpc_write_response(&out, 3, &message.base, 0, NULL, NULL), 0);
		assert_int_equal(graft_ttrpc_write_response(&out, 5, NULL, 13, "no", NULL), 0);
		for (size_t at = 0, n = 0; at < out.length; at += step) {
			assert_int_equal(graft_ttrpc_collect(&collector, (uint8_t *)out.bytes + at,
							     step < out.length - at ? step : out.length - at,
							     take_message, &taken, NULL),
					 0);
			if (taken.n == n)
				continue;
			n = taken.n;
			if (n == 1) {
				request = (const void *)graft_rpc_decode(&graft__ttrpc__request__descriptor,
									 (uint8_t *)taken.payload, taken.last.n, arena);
				assert_non_null(request);
				assert_string_equal(request->service, "a.Service");
				assert_string_equal(request->method, "Method");
				assert_int_equal(taken.last.type, GRAFT_TTRPC_REQUEST);
			}
		}
		assert_int_equal(taken.n, 3);
		assert_int_equal(taken.last.stream, 5);
		response = (const void *)graft_rpc_decode(&graft__ttrpc__response__descriptor, (uint8_t *)taken.payload,
							  taken.last.n, arena);
		assert_non_null(response);
		assert_int_equal(response->status->code, 13);
		assert_string_equal(response->status->message, "no");
		free(taken.payload);
		graft_ttrpc_collector_done(&collector);
		graft_buffer_done(&out);
		(void)graft_arena_free(arena);
	}
}

static void test_bytes_of_ttrpc(void **state)
{
	static const uint8_t expected[] = { 0, 0, 0, 7, 0, 0, 0, 5, 2, 0, 0x0a, 5, 8, 13, 0x12, 1, 'x' };
	const uint8_t too_long[] = { 0, 0x40, 0, 1, 0, 0, 0, 1, 1, 0 };
	struct graft_ttrpc_collector collector = { .n_header = 0 };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { .max = 0 };
	struct taken taken = { .n = 0 };

	assert_int_equal(graft_ttrpc_write_response(&out, 5, NULL, 13, "x", &err), 0);
	assert_int_equal(out.length, sizeof(expected));
	assert_memory_equal(out.bytes, expected, sizeof(expected));
	assert_int_equal(graft_ttrpc_collect(&collector, too_long, sizeof(too_long), take_message, &taken, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, "a message of 4194305 bytes is too large");
	assert_int_equal(taken.n, 0);
	graft_ttrpc_collector_done(&collector);
	graft_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_of_all_sizes),  cmocka_unit_test(test_no_frame_is_longer_than_4096),
		cmocka_unit_test(test_long_frames_are_read), cmocka_unit_test(test_messages),
		cmocka_unit_test(test_bytes_of_ttrpc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
