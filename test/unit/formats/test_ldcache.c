/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"

#define HWCAPS(index, level) ((uint64_t)1 << 62 | (uint64_t)(level) << 32 | (index))
#define HEADER               ((size_t)48)
#define RECORD               ((size_t)24)

static const char *hwcap_names[] = { "x86-64-v2", "x86-64-v3" };

/* A little of everything: order is that of the file. */
static const struct graft_ldcache_record sample_records[] = {
	{ "libz.so.1", "/lib/x86_64-linux-gnu/libz.so.1", 0x0303, 0, 0 },
	{ "libx.so.10", "/usr/lib/libx.so.10", 0x0303, 0x60312, 0 },
	{ "libx.so.9", "/usr/lib/libx.so.9", 0x0303, 0, 0 },
	{ "libh.so.1", "/usr/lib/glibc-hwcaps/x86-64-v2/libh.so.1.2", 0x0303, 0, HWCAPS(0, 2) },
	{ "libh.so.1", "/usr/lib/glibc-hwcaps/x86-64-v3/libh.so.1.2", 0x0303, 0, HWCAPS(1, 3) },
	{ "libh.so.1", "/usr/lib/libh.so.1", 0x0303, 0, 0 },
	{ "libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6", 0x0303, 0, 0 },
	{ "libc.so.6", "/lib/i386-linux-gnu/tls/libc.so.6", 0x0003, 0, (uint64_t)1 << 63 | 3 },
	{ "libc.so.6", "/lib/i386-linux-gnu/libc.so.6", 0x0003, 0, 0 },
};

static struct graft_ldcache sample(void)
{
	struct graft_ldcache cache = {
		.n_records = GRAFT_COUNT(sample_records), .hwcaps = hwcap_names, .n_hwcaps = 2, .generator = "a test"
	};

	cache.records = graft_arena_memdup(arena, sample_records, sizeof(sample_records));
	assert_non_null(cache.records);
	return cache;
}

static void assert_same(const struct graft_ldcache *a, const struct graft_ldcache *b)
{
	assert_int_equal(a->n_records, b->n_records);
	for (size_t i = 0; i < a->n_records; i++) {
		assert_string_equal(a->records[i].soname, b->records[i].soname);
		assert_string_equal(a->records[i].path, b->records[i].path);
		assert_int_equal(a->records[i].flags, b->records[i].flags);
		assert_int_equal(a->records[i].os_version, b->records[i].os_version);
		assert_int_equal(a->records[i].hwcap, b->records[i].hwcap);
	}
	assert_int_equal(a->n_hwcaps, b->n_hwcaps);
	for (size_t i = 0; i < a->n_hwcaps; i++)
		assert_string_equal(a->hwcaps[i], b->hwcaps[i]);
	assert_int_equal(a->generator != NULL, b->generator != NULL);
	if (a->generator)
		assert_string_equal(a->generator, b->generator);
}

static struct graft_buffer written(struct graft_ldcache *cache)
{
	struct graft_buffer out = { 0 };

	assert_int_equal(graft_ldcache_write(cache, &out, NULL), 0);
	return out;
}

static void test_written_is_read_back(void **state)
{
	struct graft_ldcache cache = sample(), again;
	struct graft_buffer out = written(&cache), second;

	assert_int_equal(graft_ldcache_read(out.bytes, out.length, "x", arena, &again, NULL), 0);
	cache = sample();
	assert_same(&cache, &again);
	second = written(&again);
	assert_int_equal(second.length, out.length);
	assert_memory_equal(second.bytes, out.bytes, out.length);
	graft_buffer_done(&out);
	graft_buffer_done(&second);
}

/* Any order of records comes out as the sample's, where the order of the list does not decide. */
static void test_sorts(void **state)
{
	struct graft_ldcache cache = sample(), wanted = sample(), again;
	struct graft_buffer out;

	for (size_t step = 1; step < cache.n_records; step++) {
		struct graft_ldcache_record *records = cache.records;

		for (size_t i = 0; i < cache.n_records; i++)
			records[i] = sample_records[(cache.n_records - 1 - i + step) % cache.n_records];
		out = written(&cache);
		assert_int_equal(graft_ldcache_read(out.bytes, out.length, "x", arena, &again, NULL), 0);
		assert_same(&wanted, &again);
		graft_buffer_done(&out);
	}
}

/* Equal records stay in the order of the list: the first is the one that the loader takes. */
static void test_sort_is_stable(void **state)
{
	struct graft_ldcache_record records[200];
	struct graft_ldcache cache = { .records = records, .n_records = GRAFT_COUNT(records) }, again;
	struct graft_buffer out;

	for (size_t i = 0; i < GRAFT_COUNT(records); i++) {
		records[i] = (struct graft_ldcache_record){ .soname = i % 3 == 0 ? "a.so" : "b.so", .flags = 0x0303 };
		records[i].path = graft_arena_printf(arena, "/%03zu/%s", i, records[i].soname);
	}
	out = written(&cache);
	assert_int_equal(graft_ldcache_read(out.bytes, out.length, "x", arena, &again, NULL), 0);
	for (size_t i = 1; i < again.n_records; i++) {
		int order = strcmp(again.records[i - 1].soname, again.records[i].soname);

		assert_true(order >= 0);
		if (order == 0)
			assert_true(strcmp(again.records[i - 1].path, again.records[i].path) < 0);
	}
	graft_buffer_done(&out);
}

static const struct {
	const char *a, *b;
	int sign;
} comparisons[] = {
	{ "", "", 0 },
	{ "a", "", 1 },
	{ "a", "b", -1 },
	{ "libx.so.9", "libx.so.10", -1 },
	{ "libx.so.10", "libx.so.9", 1 },
	{ "libx.so.1", "libx.so.1.2", -1 },
	{ "libx.so.01", "libx.so.1", 0 },
	{ "libx1", "libxa", 1 }, /* a digit above a letter */
	{ "libx.1", "libx..", 1 },
	{ "libx", "libx1", -1 },
	{ "lib9a10", "lib9a9", 1 },
	{ "4294967297", "1", 0 }, /* as the loader: modulo 2^32 */
	{ "2147483648", "0", -1 },
};

static void test_compare(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(comparisons); i++) {
		int order = graft_ldcache_compare(comparisons[i].a, comparisons[i].b);

		if ((order > 0) - (order < 0) != comparisons[i].sign)
			fail_msg("'%s' and '%s': %d", comparisons[i].a, comparisons[i].b, order);
		if (comparisons[i].sign != 0 && strcmp(comparisons[i].a, "2147483648") != 0)
			assert_true(graft_ldcache_compare(comparisons[i].b, comparisons[i].a) * comparisons[i].sign <
				    0);
	}
}

/* The header and the first record, byte by byte (little-endian hosts). */
static void test_layout(void **state)
{
	struct graft_ldcache_record record = { "libc.so.6", "/lib/libc.so.6", 0x0303, 0, 0 };
	struct graft_ldcache cache = { .records = &record, .n_records = 1 };
	struct graft_buffer out = written(&cache);
	static const unsigned char wanted[] = "glibc-ld.so.cache1.1"
					      "\1\0\0\0"
					      "\17\0\0\0"
					      "\2\0\0\0"
					      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
					      "\3\3\0\0"
					      "\115\0\0\0"
					      "\110\0\0\0"
					      "\0\0\0\0"
					      "\0\0\0\0\0\0\0\0"
					      "/lib/libc.so.6\0";

	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		skip();
	assert_true(out.length >= sizeof(wanted) - 1);
	assert_memory_equal(out.bytes, wanted, sizeof(wanted) - 1);
	graft_buffer_done(&out);
}

static void put_u32(struct graft_buffer *out, uint32_t value)
{
	graft_buffer_add(out, &value, sizeof(value));
}

/* The old table of two libraries, with or without a new file behind it. */
static struct graft_buffer old_file(const struct graft_buffer *behind)
{
	static const char strings[] = "liba.so.1\0/lib/liba.so.1\0libb.so.1\0/lib/libb.so.1";
	struct graft_buffer out = { 0 };

	graft_buffer_add(&out, "ld.so-1.7.0\0", 12);
	put_u32(&out, 2);
	put_u32(&out, 0x0303);
	put_u32(&out, 25);
	put_u32(&out, 35);
	put_u32(&out, 0x0303);
	put_u32(&out, 0);
	put_u32(&out, 10);
	if (behind)
		graft_buffer_add(&out, behind->bytes, behind->length);
	else
		graft_buffer_add(&out, strings, sizeof(strings));
	return out;
}

static void test_old_layout(void **state)
{
	struct graft_buffer old = old_file(NULL);
	struct graft_ldcache cache;

	assert_int_equal(graft_ldcache_read(old.bytes, old.length, "x", arena, &cache, NULL), 0);
	assert_int_equal(cache.n_records, 2);
	assert_string_equal(cache.records[0].soname, "libb.so.1");
	assert_string_equal(cache.records[0].path, "/lib/libb.so.1");
	assert_string_equal(cache.records[1].path, "/lib/liba.so.1");
	graft_buffer_done(&old);
}

static void test_compat_layout(void **state)
{
	struct graft_ldcache cache = sample(), again;
	struct graft_buffer new_part, both;

	/* Extension offsets are absolute: the sample without them. */
	cache.n_records = 3;
	cache.n_hwcaps = 0;
	cache.generator = NULL;
	new_part = written(&cache);
	both = old_file(&new_part);
	assert_int_equal(graft_ldcache_read(both.bytes, both.length, "x", arena, &again, NULL), 0);
	assert_same(&cache, &again);
	graft_buffer_done(&new_part);
	graft_buffer_done(&both);
}

static void test_empty_cache(void **state)
{
	struct graft_ldcache cache = { 0 }, again = { .n_records = 7 };
	struct graft_buffer out = written(&cache);

	assert_int_equal(out.length, HEADER);
	assert_int_equal(graft_ldcache_read(out.bytes, out.length, "x", arena, &again, NULL), 0);
	assert_int_equal(again.n_records, 0);
	graft_buffer_done(&out);
}

/* Overwrites the u32 at `at` and reads. */
static int read_changed(const struct graft_buffer *file, size_t at, uint32_t value, struct graft_error *err)
{
	auto_free char *copy = malloc(file->length);
	struct graft_arena *own = graft_arena_new((size_t)8 << 20);
	struct graft_ldcache cache = { 0 };
	int rc;

	assert_non_null(copy);
	assert_non_null(own);
	memcpy(copy, file->bytes, file->length);
	memcpy(copy + at, &value, sizeof(value));
	rc = graft_ldcache_read(copy, file->length, "etc/cache", own, &cache, err);
	for (size_t i = 0; rc == 0 && i < cache.n_records; i++)
		assert_true(strlen(cache.records[i].soname) <= 255 && strlen(cache.records[i].path) <= 4096);
	for (size_t i = 0; rc == 0 && i < cache.n_hwcaps; i++)
		assert_true(strlen(cache.hwcaps[i]) <= 255);
	graft_arena_free(own);
	return rc;
}

static void test_damage_is_told(void **state)
{
	struct graft_ldcache cache = sample();
	struct graft_buffer out = written(&cache);
	uint32_t extensions, length = (uint32_t)out.length;
	struct graft_error err = { 0 };
	const struct {
		const char *what;
		size_t at;
		uint32_t value;
	} rows[] = {
		{ "magic", 0, 0 },
		{ "version", 17, 0 },
		{ "count", 20, UINT32_MAX },
		{ "count of one too many for the file", 20, (length - 48) / 24 + 1 },
		{ "length of the strings", 24, length },
		{ "byte order of nobody", 28, 1 },
		{ "byte order of others", 28, 3 },
		{ "extensions behind the end", 32, length },
		{ "extensions not aligned", 32, 49 },
		{ "extensions without magic", 32, 48 },
		{ "key behind the end", HEADER + 4, length },
		{ "key far behind the end", HEADER + 4, UINT32_MAX },
		{ "key without an end", HEADER + 4, length - 1 },
		{ "value behind the end", HEADER + 8, length },
		{ "hwcaps index", HEADER + 3 * RECORD + 16, 2 },
		{ "hwcaps index, far", HEADER + 3 * RECORD + 16, UINT32_MAX },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (read_changed(&out, rows[i].at, rows[i].value, &err) == 0)
			fail_msg("accepted: %s", rows[i].what);
		assert_int_equal(err.status, GRAFT_FORMAT);
		assert_string_equal(err.msg, "unsupported file format: etc/cache");
	}
	memcpy(&extensions, out.bytes + 32, 4);
	/* Of the directory: the count, then offset and size of both sections. */
	assert_int_equal(read_changed(&out, extensions + 4, 1000, &err), -1);
	for (size_t section = 0; section < 2; section++) {
		assert_int_equal(read_changed(&out, extensions + 8 + section * 16 + 8, length + 1, &err), -1);
		assert_int_equal(read_changed(&out, extensions + 8 + section * 16 + 12, length, &err), -1);
	}
	assert_int_equal(read_changed(&out, extensions + 8 + 16 + 12, 0, &err), -1);
	assert_int_equal(read_changed(&out, extensions + 8 + 16 + 12, 6, &err), -1);
	/* An unknown section is accepted, but then the hwcaps records have no names. */
	assert_int_equal(read_changed(&out, extensions + 8, 77, &err), 0);
	assert_int_equal(read_changed(&out, extensions + 8 + 16, 77, &err), -1);
	graft_buffer_done(&out);
}

/* Sections may overlap, so a small file could have hundreds of large generators. */
static void test_one_generator(void **state)
{
	struct graft_ldcache cache = { .n_records = 1, .generator = "a test" };
	uint32_t directory[8] = { 0 }, extensions;
	struct graft_buffer out;
	struct graft_error err = { 0 };

	cache.records = sample().records;
	out = written(&cache);
	memcpy(&extensions, out.bytes + 32, 4);
	memcpy(directory, out.bytes + extensions, 8 + 16);
	directory[1] = 2;
	memcpy(directory + 6, directory + 2, 8);
	while (out.length % 4 != 0)
		graft_buffer_char(&out, '\0');
	extensions = (uint32_t)out.length;
	graft_buffer_add(&out, directory, sizeof(directory));
	graft_buffer_add(&out, directory + 4, 8);
	assert_false(graft_buffer_failed(&out));
	assert_int_equal(read_changed(&out, 32, extensions, &err), -1);
	assert_string_equal(err.msg, "unsupported file format: etc/cache");
	/* The same directory, of one generator. */
	memset(out.bytes + extensions + 8 + 16, 77, 4);
	assert_int_equal(read_changed(&out, 32, extensions, &err), 0);
	graft_buffer_done(&out);
}

/* Each byte of the file set to each of some values: an answer, no crash (the sanitizers watch), no string that does not end. */
static void test_every_offset_at_the_edges(void **state)
{
	struct graft_ldcache cache = sample();
	struct graft_buffer out = written(&cache);
	const uint32_t values[] = { 0,
				    1,
				    3,
				    48,
				    0x7fffffff,
				    0x80000000,
				    UINT32_MAX,
				    (uint32_t)out.length - 1,
				    (uint32_t)out.length,
				    (uint32_t)out.length + 1 };

	for (size_t at = 0; at + 4 <= out.length; at++) {
		for (size_t i = 0; i < GRAFT_COUNT(values); i++)
			(void)read_changed(&out, at, values[i], NULL);
	}
	graft_buffer_done(&out);
}

static void test_truncations(void **state)
{
	struct graft_ldcache cache = sample(), again = { .n_records = 4711 };
	struct graft_buffer new_part = written(&cache), old = old_file(NULL), both = old_file(&new_part);
	const struct graft_buffer *files[] = { &new_part, &old, &both };

	for (size_t i = 0; i < GRAFT_COUNT(files); i++) {
		for (size_t length = 0; length < files[i]->length; length++) {
			auto_free char *copy = malloc(length + 1);

			assert_non_null(copy);
			memcpy(copy + 1, files[i]->bytes, length);
			if (graft_ldcache_read(copy + 1, length, "x", arena, &again, NULL) < 0)
				assert_int_equal(again.n_records, 4711);
			again.n_records = 4711;
		}
	}
	graft_buffer_done(&new_part);
	graft_buffer_done(&old);
	graft_buffer_done(&both);
}

static void test_limits(void **state)
{
	char *long_name = graft_arena_alloc(arena, 5000);
	struct graft_ldcache_record record = { "libc.so.6", "/lib/libc.so.6", 0x0303, 0, 0 };
	struct graft_ldcache cache = { .records = &record, .n_records = 1 }, again;
	struct graft_buffer out, small = { .max = 64 };
	struct graft_error err = { 0 };

	memset(long_name, 'a', 4999);
	for (size_t i = 0; i < 2; i++) {
		*(i == 0 ? &record.soname : &record.path) = long_name + (i == 0 ? 4999 - 255 : 4999 - 4096);
		out = written(&cache);
		assert_int_equal(graft_ldcache_read(out.bytes, out.length, "x", arena, &again, &err), 0);
		graft_buffer_done(&out);
		*(i == 0 ? &record.soname : &record.path) -= 1;
		out = written(&cache);
		assert_int_equal(graft_ldcache_read(out.bytes, out.length, "x", arena, &again, &err), -1);
		graft_buffer_done(&out);
		record = (struct graft_ldcache_record){ "libc.so.6", "/lib/libc.so.6", 0x0303, 0, 0 };
	}
	assert_int_equal(graft_ldcache_write(&cache, &small, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_int_equal(small.length, 0);
}

static void test_too_many_records(void **state)
{
	const size_t n = 65537;
	struct graft_ldcache_record *records = graft_arena_list(arena, n, sizeof(*records));
	struct graft_ldcache cache = { .records = records, .n_records = n }, again;
	struct graft_error err = { 0 };
	struct graft_buffer out;

	assert_non_null(records);
	for (size_t i = 0; i < n; i++)
		records[i] = (struct graft_ldcache_record){ .soname = "a", .path = "/a", .flags = 0x0303 };
	out = written(&cache);
	assert_int_equal(graft_ldcache_read(out.bytes, out.length, "x", arena, &again, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
	graft_buffer_done(&out);
	cache.n_records = n - 1;
	out = written(&cache);
	assert_int_equal(graft_ldcache_read(out.bytes, out.length, "x", arena, &again, &err), 0);
	assert_int_equal(again.n_records, n - 1);
	graft_buffer_done(&out);
}

static void test_allocations_fail(void **state)
{
	struct graft_ldcache cache = sample();
	struct graft_buffer file = written(&cache);
	int n = 0, rc = -1;

	while (rc != 0) {
		struct graft_arena *own = graft_arena_new((size_t)1 << 20);
		struct graft_ldcache again = { 0 };
		struct graft_buffer out = { 0 };
		struct graft_error err = { 0 };

		assert_non_null(own);
		allocation_fail(++n);
		rc = graft_ldcache_read(file.bytes, file.length, "x", own, &again, &err);
		rc = rc < 0 ? rc : graft_ldcache_write(&again, &out, &err);
		assert_int_equal(allocation_failed(), rc != 0);
		if (rc < 0)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		graft_buffer_done(&out);
		graft_arena_free(own);
	}
	assert_true(n > 5);
	graft_buffer_done(&file);
}

static void test_library_names(void **state)
{
	static const struct {
		const char *name;
		bool is_library;
	} rows[] = {
		{ "libcuda.so", true },
		{ "libcuda.so.1", true },
		{ "ld-linux-x86-64.so.2", true },
		{ "ld.so.1", true },
		{ "ld64.so.1", true },
		{ "libcuda.a", false },
		{ "cuda.so", false },
		{ "xlibcuda.so", false },
		{ "ld.so", false },
		{ "libcuda.so.1.dpkg-new", false },
		{ "libcuda.so.1.dpkg-tmp", false },
		{ "libcuda.so.#prelink#.123", false },
		{ "libcuda.so;5f3a2b", false },
		{ "", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		if (graft_ldcache_is_library_name(rows[i].name) != rows[i].is_library)
			fail_msg("%s", rows[i].name);
}

static void test_development_links(void **state)
{
	assert_true(graft_ldcache_is_development_name("libx.so"));
	assert_true(graft_ldcache_is_development_name("/lib/libx.so"));
	assert_false(graft_ldcache_is_development_name("libx.so.1"));
	assert_false(graft_ldcache_is_development_name("so"));
	assert_true(graft_ldcache_is_development_link("libx.so", "libx.so.1"));
	assert_false(graft_ldcache_is_development_link("libx.so", "libx.so"));
	assert_false(graft_ldcache_is_development_link("libx.so.1", "libx.so.1.2"));
	assert_false(graft_ldcache_is_development_link("libx.so", "liby.so.1"));
	assert_false(graft_ldcache_is_development_link("libx.so", "libx.s"));
}

static void test_sonames(void **state)
{
	char name[257];

	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	assert_true(graft_ldcache_is_soname(name));
	name[255] = 'x';
	name[256] = '\0';
	assert_false(graft_ldcache_is_soname(name));
	assert_true(graft_ldcache_is_soname("libx.so.1"));
	assert_true(graft_ldcache_is_soname("..."));
	assert_false(graft_ldcache_is_soname(""));
	assert_false(graft_ldcache_is_soname("."));
	assert_false(graft_ldcache_is_soname(".."));
	assert_false(graft_ldcache_is_soname("a/libx.so.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_is_read_back),
		cmocka_unit_test(test_sorts),
		cmocka_unit_test(test_sort_is_stable),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_old_layout),
		cmocka_unit_test(test_compat_layout),
		cmocka_unit_test(test_empty_cache),
		cmocka_unit_test(test_damage_is_told),
		cmocka_unit_test(test_one_generator),
		cmocka_unit_test(test_every_offset_at_the_edges),
		cmocka_unit_test(test_truncations),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_too_many_records),
		cmocka_unit_test(test_allocations_fail),
		cmocka_unit_test(test_library_names),
		cmocka_unit_test(test_sonames),
		cmocka_unit_test(test_development_links),
	};

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
