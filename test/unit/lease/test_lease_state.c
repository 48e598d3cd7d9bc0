/* SPDX-License-Identifier: Apache-2.0 */
/* The file of what can be lent, what is and who waits: what is believed, and what a claim gets by it, wherever that is asked. */
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "base/cleanup.h"
#include "lease/lease_state.h"

#define GPU_0 "{\"index\": 0, \"uuid\": \"GPU-0\", \"model\": \"A100\", \"bus_id\": \"00000000:17:00.0\"}"
#define GPU_1 "{\"index\": 1, \"uuid\": \"GPU-1\", \"model\": \"H100\", \"replicas\": 2}"
#define GPU_2 "{\"index\": 2, \"uuid\": \"GPU-2\", \"model\": \"H100\"}"
#define LEASE(slot, id)                                                                            \
	"{\"id\": \"" id "\", \"boot\": \"b-1\", \"claim\": \"any:1\", \"uid\": 7, \"since\": 5, " \
	"\"date\": 7, \"slots\": [" slot "], \"holder\": {\"kind\": \"process\", \"pid\": 3}}"
#define TICKET                                                                                           \
	"{\"id\": \"abcdefgh4444\", \"boot\": \"b-1\", \"claim\": \"any:1\", \"uid\": 8, \"since\": 6, " \
	"\"date\": 7, \"holder\": {\"kind\": \"process\", \"pid\": 4}}"
#define PLACE "{\"bus_id\": \"00000000:17:00.0\", \"bridges\": [\"00000000:16:00.0\"]}"
/* Of the lists only what is between the brackets. */
#define STATE(gpus, places, leases, tickets)                                                                      \
	"{\"claim\": \"any:1\", \"host\": {\"gpus\": [" gpus "]}, \"places\": [" places "], \"leases\": [" leases \
	"], \"tickets\": [" tickets "], \"log\": \"\", \"order\": \"fifo\", \"limits\": [\"9=1\"], \"uid\": 0, "  \
	"\"now\": 4000000, \"date\": 200000}"
#define HELD  LEASE("{\"gpu\": \"GPU-0\"}", "abcdefgh2222")
#define WHOLE STATE(GPU_0 ", " GPU_1 ", " GPU_2, PLACE, HELD, "")

static void test_lease_state_parse(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: believed */
	} rows[] = {
		{ WHOLE, NULL },
		{ STATE("", "", "", ""), NULL },
		{ STATE(GPU_0, "", HELD, TICKET), NULL },
		{ STATE(GPU_0, "", LEASE("{\"gpu\": \"a b\"}", "abcdefgh2222"), ""),
		  "slots: not valid in the state of leases" },
		{ STATE(GPU_0, "", LEASE("{\"gpu\": \"GPU-0\", \"replica\": 99}", "abcdefgh2222"), ""),
		  "slots: not valid in the state of leases" },
		{ STATE(GPU_0, "", LEASE("{\"gpu\": \"GPU-0\"}", "../../x"), ""),
		  "id: not valid in the state of leases" },
		{ STATE(GPU_0, "", "", LEASE("{\"gpu\": \"GPU-0\"}", "x")), "id: not valid in the state of leases" },
		{ STATE("{\"index\": 0, \"replicas\": 4000000000}", "", "", ""),
		  "host.gpus.replicas: not valid in the state of leases" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_buffer out = { .max = 0 };
		struct graft_lease_state first, again;
		int rc = graft_lease_state_parse(rows[i].text, strlen(rows[i].text), arena, &first, &err);

		print_message("# %zu: %s\n", i, rows[i].want ? rows[i].want : "believed");
		assert_string_equal(err.msg, rows[i].want ? rows[i].want : "");
		assert_int_equal(rc, rows[i].want ? -1 : 0);
		if (rc < 0)
			continue;
		graft_record_write(&graft_lease_state_record, &first, &out);
		assert_int_equal(graft_lease_state_parse(out.bytes, out.length, arena, &again, &err), 0);
		assert_true(graft_record_equal(&graft_lease_state_record, &first, &again, NULL, 0));
		graft_buffer_done(&out);
	}
}

/* Text that is cut short anywhere is no such file. */
static void test_cut(void **state)
{
	for (size_t length = 0; length < strlen(WHOLE); length++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_arena *own = graft_arena_new((size_t)1 << 20);
		struct graft_lease_state read;

		assert_int_equal(graft_lease_state_parse(WHOLE, length, own, &read, &err), -1);
		assert_int_equal(err.status, GRAFT_FORMAT);
		(void)graft_arena_free(own);
	}
}

static void test_places(void **state)
{
	struct graft_lease_state read;

	assert_int_equal(graft_lease_state_parse(WHOLE, strlen(WHOLE), arena, &read, NULL), 0);
	assert_int_equal(read.host.n_gpus, 3);
	assert_ptr_equal(read.host.gpus[0].place, &read.places[0]);
	assert_null(read.host.gpus[1].place);
	assert_null(read.host.gpus[2].place);
}

static void test_lease_state_choose(void **state)
{
	static const struct {
		const char *text, *claim;
		uint32_t uid;
		const char *want; /* GPUs, or the message */
	} rows[] = {
		{ WHOLE, "any", 0, "GPU-2" },
		{ WHOLE, "any;model=A100", 0, "1 GPU was asked for, 0 of 1 are free" },
		{ WHOLE, "share", 0, "GPU-1" },
		{ WHOLE, "any:2", 9, "uid 9 holds 0 and may hold 1 at once" },
		{ STATE(GPU_0 ", " GPU_2, "", HELD, TICKET), "any", 0, "GPUs are free, but 1 claim comes first" },
		{ STATE("", "", "", ""), "any", 0,
		  "1 GPU was asked for, but this host has 0 that can be lent and fit" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_lease_state read;
		struct graft_claim claim;
		struct graft_lease lease;

		print_message("# %zu: %s\n", i, rows[i].want);
		assert_int_equal(graft_lease_state_parse(rows[i].text, strlen(rows[i].text), arena, &read, &err), 0);
		assert_int_equal(graft_claim_parse(rows[i].claim, arena, &claim, &err), 0);
		read.uid = rows[i].uid;
		if (graft_lease_state_choose(&read, &claim, arena, &lease, &err) < 0) {
			assert_string_equal(err.msg, rows[i].want);
			continue;
		}
		assert_int_equal(lease.n_slots, 1);
		assert_string_equal(lease.slots[0].gpu, rows[i].want);
	}
}

static void test_lease_state_allocations(void **state)
{
	struct graft_lease_state read;

	assert_true(allocation_each(own, err, graft_lease_state_parse(WHOLE, strlen(WHOLE), own, &read, &err)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lease_state_parse, arena_setup, arena_teardown),
		cmocka_unit_test(test_cut),
		cmocka_unit_test_setup_teardown(test_places, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_lease_state_choose, arena_setup, arena_teardown),
		cmocka_unit_test(test_lease_state_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
