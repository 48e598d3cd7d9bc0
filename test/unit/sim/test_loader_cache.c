/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/loader/ldcache.h"
#include "loader_cache.h"

static struct graft_ldcache read_back(const struct graft_buffer *bytes)
{
	struct graft_ldcache cache;
	struct graft_error err = { .status = GRAFT_OK };

	assert_false(graft_buffer_failed(bytes));
	if (graft_ldcache_read(bytes->bytes, bytes->length, "x", arena, &cache, &err) < 0)
		fail_msg("%s", err.msg);
	return cache;
}

/* Sorted as the loader searches, by the project's own comparison, and nothing lost. */
static void test_reader_agrees(void **state)
{
	struct sim_cache_entry entries[] = {
		{ "libx.so.9", "/usr/lib/libx.so.9", 0x0303 },
		{ "libx.so.10", "/usr/lib/libx.so.10", 0x0303 },
		{ "libcuda.so.1", "/usr/lib/i386-linux-gnu/libcuda.so.1", 0x0003 },
		{ "libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", 0x0303 },
		{ "libGLX_nvidia.so.0", "/usr/lib/libGLX_nvidia.so.0", 0x0303 },
		{ "libnvidia-tls.so.550.54.14", "/usr/lib/libnvidia-tls.so.550.54.14", 0x0303 },
		{ "odd", "/usr/lib/another-name", 0x0303 },
	};
	struct graft_buffer bytes = { .max = 0 };
	struct graft_ldcache cache;

	sim_cache_write(entries, GRAFT_COUNT(entries), &bytes);
	cache = read_back(&bytes);
	assert_int_equal(cache.n_records, GRAFT_COUNT(entries));
	assert_string_equal(cache.generator, "graft-sim " GRAFT_VERSION);
	for (size_t i = 0; i < cache.n_records; i++) {
		assert_string_equal(cache.records[i].soname, entries[i].soname);
		assert_string_equal(cache.records[i].path, entries[i].path);
		assert_int_equal(cache.records[i].flags, entries[i].flags);
		if (i > 0)
			assert_true(graft_ldcache_compare(cache.records[i - 1].soname, cache.records[i].soname) >= 0);
	}
	/* 64 bit before 32 bit, where the names are equal. */
	assert_int_equal(cache.records[4].flags, 0x0303);
	assert_string_equal(cache.records[4].soname, "libcuda.so.1");
	assert_int_equal(cache.records[5].flags, 0x0003);
	graft_buffer_done(&bytes);
}

static void test_empty(void **state)
{
	struct graft_buffer bytes = { .max = 0 };

	sim_cache_write(NULL, 0, &bytes);
	assert_int_equal(read_back(&bytes).n_records, 0);
	graft_buffer_done(&bytes);
}

static void test_merge(void **state)
{
	struct sim_cache_entry driver[] = { { "libcuda.so.1", "/driver/libcuda.so.1", 0x0303 } };
	struct graft_ldcache_record host[] = {
		{ "libcuda.so.1", "/old/libcuda.so.1", 0x0303, 0, 0 },
		{ "libcuda.so.1", "/old32/libcuda.so.1", 0x0003, 0, 0 },
		{ "libc.so.6", "/lib/libc.so.6", 0x0303, 0, 0 },
		{ "libh.so.1", "/lib/glibc-hwcaps/x86-64-v3/libh.so.1", 0x0303, 0, (uint64_t)1 << 62 },
	};
	const char *hwcaps[] = { "x86-64-v3" };
	struct graft_ldcache host_cache = {
		.records = host, .n_records = GRAFT_COUNT(host), .hwcaps = hwcaps, .n_hwcaps = 1
	};
	struct graft_buffer a = { .max = 0 }, b = { .max = 0 }, out = { .max = 0 };
	struct graft_ldcache cache;
	struct graft_error err;

	sim_cache_write(driver, 1, &a);
	assert_int_equal(graft_ldcache_write(&host_cache, &b, &err), 0);
	assert_int_equal(sim_cache_merge(a.bytes, a.length, b.bytes, b.length, arena, &out), 0);
	cache = read_back(&out);
	assert_int_equal(cache.n_records, 3);
	assert_string_equal(cache.records[0].path, "/driver/libcuda.so.1");
	assert_string_equal(cache.records[1].path, "/old32/libcuda.so.1");
	assert_string_equal(cache.records[2].path, "/lib/libc.so.6");
	/* Cut anywhere, the host's file is refused or read, never more than read. */
	for (size_t n = 0; n < b.length; n++) {
		char *cut = graft_arena_memdup(arena, b.bytes, n);

		assert_non_null(cut);
		out.length = 0;
		(void)sim_cache_merge(a.bytes, a.length, cut, n, arena, &out);
	}
	assert_int_equal(sim_cache_merge(a.bytes, a.length, "ld.so-1.7.0", 11, arena, &out), -1);
	graft_buffer_done(&a);
	graft_buffer_done(&b);
	graft_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader_agrees),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
