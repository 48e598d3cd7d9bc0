/* SPDX-License-Identifier: Apache-2.0 */
/* strings: beginnings, ends, members of lists; what UTF-8 is made of. */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/strings.h"

static void test_ends(void **state)
{
	assert_true(graft_starts_with("/dev/nvidia0", "/dev/"));
	assert_true(graft_starts_with("a", "a"));
	assert_true(graft_starts_with("a", ""));
	assert_false(graft_starts_with("a", "ab"));
	assert_true(graft_ends_with("libcuda.so.1", ".so.1"));
	assert_true(graft_ends_with("a", "a"));
	assert_false(graft_ends_with("a", "ba"));
}

static void test_lists(void **state)
{
	static const struct {
		const char *list, *word;
		bool want;
	} cases[] = {
		{ "devices", "devices", true },         { "rw,devices", "devices", true },
		{ "devices,freezer", "devices", true }, { "cpu,devices,freezer", "devices", true },
		{ "cpu,devices2", "devices", false },   { "name=devices", "devices", false },
		{ "device", "devices", false },         { "", "devices", false },
		{ ",,devices", "devices", true },
	};
	static const char *const items[] = { "a", "b" };

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++)
		assert_int_equal(graft_list_has(cases[i].list, cases[i].word), cases[i].want);
	assert_true(graft_is_in(items, 2, "b"));
	assert_false(graft_is_in(items, 1, "b"));
}

static void test_sameness(void **state)
{
	char copy[] = "a";

	assert_true(graft_is_same_text(copy, "a"));
	assert_true(graft_is_same_text(NULL, NULL));
	assert_false(graft_is_same_text("a", "ab"));
	assert_false(graft_is_same_text("", NULL));
	assert_false(graft_is_same_text(NULL, "a"));
}

static void test_code_points(void **state)
{
	static const struct {
		uint32_t code;
		const char *bytes;
	} cases[] = {
		{ 'a', "a" },
		{ 0x7f, "\x7f" },
		{ 0x80, "\xc2\x80" },
		{ 0x7ff, "\xdf\xbf" },
		{ 0x800, "\xe0\xa0\x80" },
		{ 0xffff, "\xef\xbf\xbf" },
		{ 0x10000, "\xf0\x90\x80\x80" },
		{ 0x10ffff, "\xf4\x8f\xbf\xbf" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		char bytes[5] = "";

		assert_ptr_equal(graft_utf8_put(bytes, cases[i].code), bytes + strlen(cases[i].bytes));
		assert_string_equal(bytes, cases[i].bytes);
	}
}

static void test_places(void **state)
{
	static const char text[] = "a\n\xc3\xa4"
				   "b\n";
	static const unsigned int places[][2] = {
		{ 1, 1 }, { 1, 2 }, { 2, 1 }, { 2, 2 }, { 2, 2 }, { 2, 3 }, { 3, 1 }
	};
	unsigned int line, column;

	for (size_t i = 0; i < GRAFT_COUNT(places); i++) {
		graft_utf8_place(text, i, &line, &column);
		assert_int_equal(line, places[i][0]);
		assert_int_equal(column, places[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),        cmocka_unit_test(test_lists),  cmocka_unit_test(test_sameness),
		cmocka_unit_test(test_code_points), cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
