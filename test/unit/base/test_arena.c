/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"

static void test_push_keeps_items(void **state)
{
	struct graft_arena *arena = graft_arena_new(1 << 20);
	uint32_t *items = NULL;
	size_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t *item = graft_arena_push(arena, &items, &n, sizeof(*item));

		assert_non_null(item);
		assert_int_equal(*item, 0);
		*item = i;
	}
	assert_int_equal(n, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(items[i], i);
	graft_arena_free(arena);
}

static void test_maximum_is_remembered(void **state)
{
	struct graft_arena *arena = graft_arena_new(256);

	(void)state;
	assert_non_null(graft_arena_alloc(arena, 200));
	assert_false(graft_arena_failed(arena));
	assert_null(graft_arena_alloc(arena, 100));
	assert_true(graft_arena_failed(arena));
	assert_null(graft_arena_alloc(arena, SIZE_MAX));
	assert_null(graft_arena_list(arena, SIZE_MAX / 2, 8));
	graft_arena_free(arena);
}

static void test_strings(void **state)
{
	struct graft_arena *arena = graft_arena_new(4096);

	(void)state;
	assert_string_equal(graft_arena_printf(arena, "%s-%d", "a", 7), "a-7");
	assert_string_equal(graft_arena_strndup(arena, "abcdef", 3), "abc");
	assert_null(graft_arena_strdup(arena, NULL));
	assert_false(graft_arena_failed(arena));
	graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_keeps_items),
		cmocka_unit_test(test_maximum_is_remembered),
		cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
