/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of CSV mount lists: the rows of SPEC runtime-and-hook 14.18, and what old files have. */
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/csv_mounts.h"

static const struct {
	const char *text;
	int type; /* -1: no entry */
	const char *path;
	size_t skipped;
} lines[] = {
	{ "", -1, NULL, 0 },
	{ "\t", -1, NULL, 0 },
	{ "\n\n", -1, NULL, 0 },
	{ ",", -1, NULL, 1 },
	{ "dev,", -1, NULL, 1 },
	{ "dev, \t", -1, NULL, 1 },
	{ "dev", -1, NULL, 1 },
	{ "# a comment, with a comma", -1, NULL, 1 },
	{ "type, path", -1, NULL, 1 },
	{ "not-dev ,/a/path", -1, NULL, 1 },
	{ "DEV ,/a/path", -1, NULL, 1 },
	{ "de,/a/path", -1, NULL, 1 },
	{ ",/a/path", -1, NULL, 1 },
	{ "dev ,/a/path", GRAFT_CSV_DEV, "/a/path", 0 },
	{ "dev,/a/path\r\n", GRAFT_CSV_DEV, "/a/path", 0 },
	{ "  dev\t,\t/a/path  ", GRAFT_CSV_DEV, "/a/path", 0 },
	{ "dev ,/a/path,with,commas", GRAFT_CSV_DEV, "/a/path,with,commas", 0 },
	{ "dev, nvmap", GRAFT_CSV_DEV, "nvmap", 0 },
	{ "dir, /a path/with blanks", GRAFT_CSV_DIR, "/a path/with blanks", 0 },
	{ "lib, /usr/lib/lib*.so.1", GRAFT_CSV_LIB, "/usr/lib/lib*.so.1", 0 },
	{ "sym, /usr/lib/libx.so", GRAFT_CSV_SYM, "/usr/lib/libx.so", 0 },
	{ "sym, \"quoted\"", GRAFT_CSV_SYM, "\"quoted\"", 0 },
};

static void test_lines(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(lines); i++) {
		struct graft_arena *arena = graft_arena_new(65536);
		struct graft_csv_entry *entries = NULL;
		size_t n = 0, skipped = 99;

		print_message("# row %zu\n", i);
		assert_int_equal(
		    graft_csv_read(lines[i].text, strlen(lines[i].text), arena, &entries, &n, &skipped, NULL), 0);
		assert_int_equal(skipped, lines[i].skipped);
		assert_int_equal(n, lines[i].type >= 0 ? 1 : 0);
		if (n == 1) {
			assert_int_equal(entries[0].type, lines[i].type);
			assert_string_equal(entries[0].path, lines[i].path);
		}
		graft_arena_free(arena);
	}
}

static void test_files(void **state)
{
	static const char first[] = "dev, /dev/nvmap\nheading\nlib, /a\0b\nsym, /c", second[] = "dir, /d\n";
	struct graft_arena *arena = graft_arena_new(65536);
	struct graft_csv_entry *entries = NULL;
	size_t n = 0, skipped;

	assert_int_equal(graft_csv_read(first, sizeof(first) - 1, arena, &entries, &n, &skipped, NULL), 0);
	assert_int_equal(skipped, 2); /* the heading, and the path with a NUL */
	assert_int_equal(graft_csv_read(second, sizeof(second) - 1, arena, &entries, &n, &skipped, NULL), 0);
	assert_int_equal(n, 3);
	assert_string_equal(entries[0].path, "/dev/nvmap");
	assert_string_equal(entries[1].path, "/c");
	assert_string_equal(entries[2].path, "/d");
	graft_arena_free(arena);
}

static void test_limits(void **state)
{
	static const char line[] = "dev,a\n";
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	size_t length = (sizeof(line) - 1) * 65537, n = 0, skipped;
	char *text = graft_arena_alloc(arena, length);
	struct graft_csv_entry *entries = NULL;
	struct graft_error err = { .status = GRAFT_OK };

	assert_non_null(text);
	for (size_t i = 0; i < length; i++)
		text[i] = line[i % (sizeof(line) - 1)];
	assert_int_equal(graft_csv_read(text, length, arena, &entries, &n, &skipped, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	graft_arena_free(arena);
}

static void test_memory(void **state)
{
	static const char text[] = "dev, /dev/nvmap\nlib, /a\nsym, /c";

	for (int n = 1; n < 10; n++) {
		struct graft_arena *arena = graft_arena_new(65536);
		struct graft_csv_entry *entries = NULL;
		struct graft_error err = { .status = GRAFT_OK };
		size_t n_entries = 0, skipped;
		int rc;

		assert_non_null(arena);
		allocation_fail(n);
		rc = graft_csv_read(text, sizeof(text) - 1, arena, &entries, &n_entries, &skipped, &err);
		if (!allocation_reported(rc, &err)) {
			graft_arena_free(arena);
			assert_true(n > 1);
			return;
		}
		graft_arena_free(arena);
	}
	fail_msg("more allocations than a short file needs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
