/* SPDX-License-Identifier: Apache-2.0 */
/* strings: beginnings, ends, and members of lists. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
