/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/path.h"

static void test_clean(void **state)
{
	static const struct {
		const char *base, *path, *clean;
	} rows[] = {
		{ NULL, "/", "/" },
		{ NULL, "//", "/" },
		{ NULL, "/..", "/" },
		{ NULL, "/a/../..", "/" },
		{ NULL, "/a", "/a" },
		{ NULL, "/a/", "/a" },
		{ NULL, "//a///b//", "/a/b" },
		{ NULL, "/./a/./b/.", "/a/b" },
		{ NULL, "/a/b/../c", "/a/c" },
		{ NULL, "/a/b/c/../../d", "/a/d" },
		{ NULL, "/../a", "/a" },
		{ NULL, "/a/...", "/a/..." },
		{ NULL, "/a/..b/.c", "/a/..b/.c" },
		{ NULL, "a", NULL },
		{ NULL, "", NULL },
		{ "b", "a", NULL },
		{ "/bundle", "rootfs", "/bundle/rootfs" },
		{ "/bundle/", "./rootfs/", "/bundle/rootfs" },
		{ "/bundle", "../rootfs", "/rootfs" },
		{ "/bundle", "/rootfs", "/rootfs" },
		{ "/bundle", "", "/bundle" },
		{ "/", ".", "/" },
	};
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);

	assert_non_null(arena);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *clean = graft_path_clean(rows[i].base, rows[i].path, arena);

		if (!rows[i].clean != !clean || (clean && strcmp(clean, rows[i].clean) != 0))
			fail_msg("'%s' is '%s' instead of '%s'", rows[i].path, clean ? clean : "nothing",
				 rows[i].clean ? rows[i].clean : "nothing");
	}
	(void)graft_arena_free(arena);
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

static void test_compare(void **state)
{
	static const struct {
		const char *a, *b;
		int order;
	} rows[] = {
		{ "/a", "/b", -1 }, { "/b", "/a", 1 }, { "/a", "/a", 0 }, { "/z", "/a/b", -1 }, { "/a/b/c", "/z/z", 1 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		assert_int_equal(sign(graft_path_compare(rows[i].a, rows[i].b)), rows[i].order);
}

static void test_name(void **state)
{
	assert_string_equal(graft_path_name("/usr/lib/libcuda.so.1"), "libcuda.so.1");
	assert_string_equal(graft_path_name("libcuda.so.1"), "libcuda.so.1");
	assert_string_equal(graft_path_name("/usr/"), "");
}

static void test_is_within(void **state)
{
	static const struct {
		const char *path, *directory;
		bool within;
	} rows[] = {
		{ "/a", "/a", true }, { "/a/b", "/a", true },  { "/a/b/c", "/a/b", true }, { "/", "/", true },
		{ "/a", "/", true },  { "/ab", "/a", false },  { "/a", "/ab", false },     { "/a", "/a/b", false },
		{ "/", "/a", false }, { "/a.b", "/a", false }, { "/b/a", "/a", false },    { "/a/bc", "/a/b", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *path = rows[i].path, *directory = rows[i].directory;
		bool overlap = rows[i].within || graft_path_is_within(directory, path);

		if (graft_path_is_within(path, directory) != rows[i].within)
			fail_msg("%s within %s", path, directory);
		if (graft_path_overlap(path, directory) != overlap || graft_path_overlap(directory, path) != overlap)
			fail_msg("%s and %s", path, directory);
	}
}

static void test_same_directory(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "/a/b", "/a/c", true },   { "/a", "/b", true },       { "a", "b", true },
		{ "/a/b", "/a/b/", false }, { "/a/b", "/b", false },    { "/a/b", "/c/b", false },
		{ "/a/b", "/aa/b", false }, { "/a/b", "/a//b", false }, { "/a", "a", false },
		{ "/a/", "/a/b", true },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (graft_path_same_directory(rows[i].a, rows[i].b) != rows[i].same ||
		    graft_path_same_directory(rows[i].b, rows[i].a) != rows[i].same)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
	}
}

static void test_directory(void **state)
{
	static const char *const rows[][2] = {
		{ "/a/b", "/a" }, { "/a/b/c", "/a/b" }, { "/b", "/" }, { "/a/", "/a" }, { "a/b", "a" }, { "/", "/" },
	};
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);

	assert_non_null(arena);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		assert_string_equal(graft_path_directory(rows[i][0], arena), rows[i][1]);
	assert_null(graft_path_directory("libcuda.so.1", arena));
	assert_null(graft_path_directory("", arena));
	assert_false(graft_arena_failed(arena));
	(void)graft_arena_free(arena);
}

static void test_has_dots(void **state)
{
	static const struct {
		const char *path;
		bool dots;
	} rows[] = {
		{ "/", false },        { "", false },        { "/a", false },      { "/a/b/", false },
		{ "//", false },       { "/.", true },       { "/..", true },      { "/./a", true },
		{ "/../a", true },     { "/a/.", true },     { "/a/..", true },    { "/a/./b", true },
		{ "/a/../b", true },   { "/a//../b", true }, { "/a/b/../", true }, { "/.a", false },
		{ "/a/.b/c", false },  { "/..a", false },    { "/a/..b", false },  { "/...", false },
		{ "/a/.../b", false }, { "/a.", false },     { "/a../b", false },  { "/a.b/c.", false },
		{ "/.a/..", true },    { "/.../.", true },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		if (graft_path_has_dots(rows[i].path) != rows[i].dots)
			fail_msg("%s", rows[i].path);
}

static void test_has_parents(void **state)
{
	static const char *const with[] = { "/..", "/../a", "/a/..", "/a//../b", "/a/b/../", "/.../..", "/./.." };
	static const char *const without[] = { "", "/", "/.", "/a/./b", "/...", "/..a/b", "/a/b..", "/a../b" };

	for (size_t i = 0; i < GRAFT_COUNT(with); i++)
		if (!graft_path_has_parents(with[i]))
			fail_msg("%s", with[i]);
	for (size_t i = 0; i < GRAFT_COUNT(without); i++)
		if (graft_path_has_parents(without[i]))
			fail_msg("%s", without[i]);
}

static void test_memory(void **state)
{
	struct graft_arena *arena = graft_arena_new(4);

	assert_non_null(arena);
	assert_null(graft_path_clean(NULL, "/a/long/path/that/does/not/fit", arena));
	assert_null(graft_path_directory("/a/long/path/that/does/not/fit", arena));
	assert_true(graft_arena_failed(arena));
	(void)graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),          cmocka_unit_test(test_compare),
		cmocka_unit_test(test_is_within),      cmocka_unit_test(test_name),
		cmocka_unit_test(test_same_directory), cmocka_unit_test(test_directory),
		cmocka_unit_test(test_memory),         cmocka_unit_test(test_has_dots),
		cmocka_unit_test(test_has_parents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
