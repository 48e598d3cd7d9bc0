/* SPDX-License-Identifier: Apache-2.0 */
/* Which host kept facts belong to, and files without facts; test_nvml.c asks for facts. */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "fixture.h"
#include "host/kept_facts.h"

#define BOOT "/proc/sys/kernel/random/boot_id"

static struct fixture fixture;
static struct graft_arena *arena;
static char logged[512];

static void keep_line(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)snprintf(logged, sizeof(logged), "%s", message);
}

static const struct graft_log log_ = { .write = keep_line, .max = GRAFT_LOG_INFO };

static int set_up(void **state)
{
	fixture_init(&fixture);
	arena = graft_arena_new((size_t)8 << 20);
	logged[0] = '\0';
	fixture_kernel(&fixture, FIXTURE_VERSION);
	fixture_gpu(&fixture, "0000:1b:00.0", 0, "GPU-one", "NVIDIA A100-SXM4-40GB");
	fixture_write(&fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
	fixture_write(&fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 13\n");
	fixture_libraries(&fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_write(&fixture, BOOT, "d2f1aa00-0000-4000-8000-000000000000\n");
	return arena ? 0 : -1;
}

static int tear_down(void **state)
{
	arena = graft_arena_free(arena);
	fixture_done(&fixture);
	return 0;
}

/* The facts of the host as it is now, without those that have to be asked for. */
static struct graft_kept_facts identify(void)
{
	struct graft_host_options options = fixture.options;
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kept_facts facts = { .version = 0 };

	options.host_root = options.root;
	if (graft_host_discover(&options, GRAFT_NEED_GPUS | GRAFT_NEED_MIG, &inventory, &err) < 0 ||
	    graft_kept_identify(&options, inventory, arena, &facts, &err) < 0)
		fail_msg("%s", err.msg);
	(void)graft_inventory_free(inventory);
	return facts;
}

/* Returns what is said of a text that was kept, "" if it is taken. */
static const char *taken(const struct graft_buffer *text)
{
	struct graft_kept_facts facts = identify();
	struct graft_error err = { .status = GRAFT_OK };
	int rc = graft_kept_parse(graft_buffer_text(text), text->length, &log_, arena, &facts, &err);

	assert_in_range(rc, 0, 1);
	if (rc == 0)
		return logged;
	assert_int_equal(facts.nvml.cuda_version, 12020);
	assert_string_equal(facts.vgpus[0].host_driver_branch, "r470_00");
	return "";
}

static struct graft_buffer keep(void)
{
	struct graft_kept_facts facts = identify();
	struct graft_kept_vgpu vgpu = { .bus_id = "00000000:1b:00.0", .host_driver_branch = "r470_00" };
	struct graft_buffer text = { .max = 0 };

	facts.nvml.cuda_version = 12020;
	facts.vgpus = &vgpu;
	facts.n_vgpus = 1;
	graft_kept_write(&facts, &text);
	return text;
}

static void test_same_host(void **state)
{
	struct graft_buffer text = keep();

	assert_string_equal(taken(&text), "");
	assert_string_equal(logged, "");
	graft_buffer_done(&text);
}

static void test_other_hosts(void **state)
{
	struct graft_buffer text = keep();

	fixture_write(&fixture, BOOT, "11111111-0000-4000-8000-000000000000\n");
	assert_string_equal(taken(&text), "the kept facts are of another boot, collecting them again");
	/* Without a boot id nothing is taken, not even what was kept without one. */
	fixture_write(&fixture, BOOT, "?\n");
	graft_buffer_done(&text);
	text = keep();
	assert_string_equal(taken(&text), "the kept facts are of another boot, collecting them again");
	graft_buffer_done(&text);

	fixture_write(&fixture, BOOT, "d2f1aa00-0000-4000-8000-000000000000\n");
	text = keep();
	fixture_write(&fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi2/access", "DeviceFileMinor: 21\n");
	fixture_write(&fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi2/ci0/access", "DeviceFileMinor: 22\n");
	assert_string_equal(taken(&text), "the kept facts are of other devices, collecting them again");
	graft_buffer_done(&text);
	text = keep();
	assert_string_equal(taken(&text), "");
	fixture_remove(&fixture, "/dev/nvidia0");
	fixture_gpu(&fixture, "0000:1b:00.0", 0, "GPU-two", "NVIDIA A100-SXM4-40GB");
	assert_string_equal(taken(&text), "the kept facts are of other devices, collecting them again");
	graft_buffer_done(&text);
	text = keep();
	{
		struct graft_kept_facts facts = { .version = GRAFT_KEPT_VERSION,
						  .boot_id = "d2f1aa00-0000-4000-8000-000000000000",
						  .driver_version = "575.1" };
		struct graft_error err = { .status = GRAFT_OK };

		assert_int_equal(graft_kept_parse(graft_buffer_text(&text), text.length, &log_, arena, &facts, &err),
				 0);
		assert_string_equal(logged, "the kept facts are of another driver, collecting them again");
	}
	graft_buffer_done(&text);
}

/* Ten seconds, twice as long each time, ten minutes at most; eight times. */
static void test_waits(void **state)
{
	static const struct {
		uint32_t n_asked, asked_s;
		int64_t now_s, wait_s;
	} rows[] = {
		{ 0, 100, 100, 10 },  { 1, 100, 100, 10 }, { 1, 100, 104, 6 },   { 1, 100, 110, 0 },
		{ 1, 100, 999, 0 },   { 2, 100, 100, 20 }, { 6, 100, 100, 320 }, { 7, 100, 100, 600 },
		{ 8, 100, 9999, -1 }, { 3, 100, 99, 0 },
	};
	const char *reasons[] = { "GPU 0 has not joined its NVLink fabric" };
	struct graft_kept_facts facts = { .nvml = { .unsettled = reasons, .n_unsettled = 1 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		facts.n_asked = rows[i].n_asked;
		facts.asked_s = rows[i].asked_s;
		assert_int_equal(graft_kept_wait_s(&facts, rows[i].now_s), rows[i].wait_s);
	}
	facts = (struct graft_kept_facts){ .asked_s = 100 };
	assert_int_equal(graft_kept_wait_s(&facts, 9999), -1);
}

static void test_damaged(void **state)
{
	struct graft_buffer text = keep();
	struct graft_buffer other = { .max = 0 };
	size_t length = text.length;

	for (text.length = 0; text.length < length - 2; text.length++)
		assert_true(strncmp(taken(&text), "the kept facts are damaged, collecting them again: ", 46) == 0);
	graft_buffer_done(&text);
	graft_buffer_string(&other, "{\"version\": 1, \"nvml\": {}}");
	assert_string_equal(taken(&other), "the kept facts are of another version of this file, collecting them again");
	graft_buffer_done(&other);
}

static void test_no_memory(void **state)
{
	struct graft_buffer text = keep();
	struct graft_kept_facts now = identify();

	for (int n = 1;; n++) {
		struct graft_arena *small = graft_arena_new((size_t)1 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_kept_facts facts = now;
		int rc;

		allocation_fail(n);
		rc = graft_kept_parse(graft_buffer_text(&text), text.length, NULL, small, &facts, &err);
		if (!allocation_failed()) {
			assert_int_equal(rc, 1);
			(void)graft_arena_free(small);
			break;
		}
		assert_int_equal(rc, -1);
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
		(void)graft_arena_free(small);
	}
	graft_buffer_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same_host, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_hosts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
