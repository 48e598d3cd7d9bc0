/* SPDX-License-Identifier: Apache-2.0 */
/* What two logs report about three GPUs: faults and recoveries, and who had which when. */
#include <string.h>

#include "../arena.h"
#include "base/cleanup.h"
#include "lease/lease_log.h"
#include "lease/lease_past.h"

static struct graft_lendable_mig migs[2] = { { .uuid = "MIG-a", .gi = 1 }, { .uuid = "MIG-b", .gi = 2 } };
static struct graft_lendable_gpu gpus[3] = {
	{ .uuid = "GPU-0", .bus_id = "00000000:3b:00.0" },
	{ .uuid = "GPU-1", .bus_id = "00000000:41:00.0" },
	{ .uuid = "GPU-2", .bus_id = "00000001:41:00.0", .migs = migs, .n_migs = 2 }
};
static struct graft_lendable host = { .gpus = gpus, .n_gpus = 3 };

#define XID_79 "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.\n"

static void test_faults(void **state)
{
	static const struct {
		const char *text;
		const char *ill[3];
		bool migs[2];
	} rows[] = {
		{ "", { NULL }, { false } },
		{ XID_79, { "it has failed: Xid 79" }, { false } },
		{ "<6>[    1.000000] usb 1-1: new device\n<4>[   12.345678] " XID_79,
		  { "it has failed: Xid 79" },
		  { false } },
		{ "<4>[   12.345678][  T123] " XID_79, { "it has failed: Xid 79" }, { false } },
		/* A process can write what it likes, but not as the kernel. */
		{ "<12>[   12.345678] " XID_79, { NULL }, { false } },
		{ "<4>[   12.345678] python: " XID_79, { NULL }, { false } },
		/* Faults of applications. */
		{ "NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=python, MMU Fault\n", { NULL }, { false } },
		{ XID_79 "NVRM: GPU 0000:3b:00.0: GPU reset\n", { NULL }, { false } },
		{ XID_79 "NVRM: GPU 0000:41:00.0: GPU reset\n", { "it has failed: Xid 79" }, { false } },
		{ "NVRM: GPU 0000:3b:00.0: GPU reset\n" XID_79, { "it has failed: Xid 79" }, { false } },
		{ XID_79 "pci 0000:3b:00.0: [10de:2330] type 00 class 0x030200\n", { NULL }, { false } },
		{ XID_79 "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03\n", { NULL }, { false } },
		{ "NVRM: Xid (PCI:0001:41:00 GPU-I:02 GPU-CI:00): 94, pid=7, name=a, Contained\n",
		  { NULL },
		  { false, true } },
		/* The last line is cut off, or has no end. */
		{ "NVRM: Xid (PCI:0000:3b", { NULL }, { false } },
		{ "x\n<", { NULL }, { false } },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		print_message("# %zu\n", i);
		assert_int_equal(graft_lease_past_faults(rows[i].text, arena, &host, NULL), 0);
		for (size_t k = 0; k < 3; k++) {
			if (rows[i].ill[k])
				assert_string_equal(gpus[k].ill, rows[i].ill[k]);
			else
				assert_null(gpus[k].ill);
		}
		assert_int_equal(migs[0].ill, rows[i].migs[0]);
		assert_int_equal(migs[1].ill, rows[i].migs[1]);
	}
}

static const char history[] = "100 taken aaaaaaaaaaaa uid 7 any:2 GPU-0,GPU-1 container one\n"
			      "150 taken bbbbbbbbbbbb owner anna any:1 GPU-2 container two\n"
			      "200 freed aaaaaaaaaaaa uid 7 no process is left in its cgroup\n"
			      "250 taken cccccccccccc uid 7 any:1 GPU-1 container one\n"
			      "260 freed eeeeeeeeeeee uid 7 its process has ended\n"
			      "300 taken dddddddddddd uid 7 any:1 GPU-0 process 12\n"
			      "350 freed cccccccccccc uid 7 no process is left in its cgroup\n";

static void test_freed(void **state)
{
	graft_lease_past_freed(history, &host);
	assert_int_equal(gpus[0].freed, 200);
	assert_int_equal(gpus[1].freed, 350);
	assert_int_equal(gpus[2].freed, 0);
	graft_lease_past_freed("", &host);
	graft_lease_past_freed(" freed \n freed aaaaaaaaaaaa", &host);
}

static void test_devices(void **state)
{
	struct graft_strings devices;

	assert_int_equal(graft_lease_past_devices(history, "one", arena, &devices, NULL), 0);
	assert_int_equal(devices.n, 1);
	assert_string_equal(devices.items[0], "GPU-1");
	assert_int_equal(graft_lease_past_devices(history, "two", arena, &devices, NULL), 0);
	assert_int_equal(devices.n, 1);
	assert_string_equal(devices.items[0], "GPU-2");
	assert_int_equal(
	    graft_lease_past_devices("1 taken a uid 7 any:2 GPU-0,GPU-1 container x\n", "x", arena, &devices, NULL), 0);
	assert_int_equal(devices.n, 2);
	assert_string_equal(devices.items[1], "GPU-1");
	assert_int_equal(graft_lease_past_devices(history, "on", arena, &devices, NULL), 0);
	assert_int_equal(devices.n, 0);
	assert_int_equal(graft_lease_past_devices(" container x\n", "x", arena, &devices, NULL), 0);
	assert_int_equal(devices.n, 0);
}

/* A claim and a name may have blanks, and say what they like. */
static void test_words(void **state)
{
	struct graft_lease_slot slots[] = { { .gpu = "GPU-0" }, { .gpu = "GPU-2" } };
	const struct graft_lease lease = { .id = "ffffffffffff",
					   .claim = "any:2,model=H100 80GB freed dddddddddddd GPU-1",
					   .slots = slots,
					   .n_slots = 2,
					   .uid = 7,
					   .holder = { .container = "a b\nc" } };
	struct graft_buffer log = { .max = 4096 };
	struct graft_strings devices;

	graft_buffer_string(&log, history);
	graft_lease_log_add(&lease, "taken", NULL, &log);
	assert_non_null(strstr(graft_buffer_text(&log), " taken ffffffffffff uid 7 any:2,model=H100_80GB_freed_"
							"dddddddddddd_GPU-1 GPU-0,GPU-2 container a_b_c\n"));
	assert_int_equal(graft_lease_past_devices(graft_buffer_text(&log), "a b\nc", arena, &devices, NULL), 0);
	assert_int_equal(devices.n, 2);
	assert_string_equal(devices.items[1], "GPU-2");
	graft_lease_past_freed(graft_buffer_text(&log), &host);
	assert_int_equal(gpus[0].freed, 200);
	assert_int_equal(gpus[1].freed, 350);
	graft_buffer_done(&log);
	/* Nor do words that are elsewhere than an event. */
	graft_lease_past_freed("100 taken aaaaaaaaaaaa uid 7 any:1 GPU-1 container one\n"
			       "900 taken bbbbbbbbbbbb uid 7 x freed aaaaaaaaaaaa GPU-2 container two\n",
			       &host);
	assert_int_equal(gpus[1].freed, 350);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_faults, arena_setup, arena_teardown),
		cmocka_unit_test(test_freed),
		cmocka_unit_test_setup_teardown(test_devices, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_words, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
