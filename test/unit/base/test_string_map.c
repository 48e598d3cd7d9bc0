/* SPDX-License-Identifier: Apache-2.0 */
/* string_map: compared with a list that is searched from its beginning. */
#include "../arena.h"
#include "../unit.h"
#include "base/string_map.h"

static void test_first_index_stays(void **state)
{
	struct graft_string_map map;
	char same[] = "one";

	assert_true(graft_string_map_init(&map, 3, arena));
	assert_true(graft_string_map_find(&map, "one") == GRAFT_STRING_MAP_NONE);
	assert_int_equal(graft_string_map_put(&map, "one", 7), 7);
	assert_int_equal(graft_string_map_put(&map, same, 8), 7);
	assert_int_equal(graft_string_map_put(&map, "", 9), 9);
	assert_int_equal(graft_string_map_find(&map, same), 7);
	assert_int_equal(graft_string_map_find(&map, ""), 9);
	assert_true(graft_string_map_find(&map, "on") == GRAFT_STRING_MAP_NONE);
}

static void test_many(void **state)
{
	enum { N = 5000 };
	struct graft_string_map map;

	assert_true(graft_string_map_init(&map, N, arena));
	for (size_t i = 0; i < N; i++)
		assert_int_equal(graft_string_map_put(&map, graft_arena_printf(arena, "/usr/lib/lib%zu.so", i), i), i);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(graft_string_map_find(&map, graft_arena_printf(arena, "/usr/lib/lib%zu.so", i)), i);
	assert_true(graft_string_map_find(&map, "/usr/lib/lib5000.so") == GRAFT_STRING_MAP_NONE);
}

/* A search always ends: there are more slots than strings. */
static void test_full(void **state)
{
	static const char *const strings[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l" };
	size_t n_found = 0;
	struct graft_string_map map;

	assert_true(graft_string_map_init(&map, 4, arena));
	for (size_t i = 0; i < 12; i++)
		assert_int_equal(graft_string_map_put(&map, strings[i], i), i);
	for (size_t i = 0; i < 12; i++)
		n_found += graft_string_map_find(&map, strings[i]) == i;
	assert_int_equal(n_found, 4);
	assert_true(graft_string_map_init(&map, 0, arena));
	assert_int_equal(graft_string_map_put(&map, "a", 1), 1);
	assert_true(graft_string_map_find(&map, "a") == GRAFT_STRING_MAP_NONE);
}

static void test_memory(void **state)
{
	struct graft_arena *none = graft_arena_new(1);
	struct graft_string_map map;

	assert_false(graft_string_map_init(&map, 4, none));
	assert_true(graft_arena_failed(none));
	graft_arena_free(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first_index_stays, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_many, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_full, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_memory, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
