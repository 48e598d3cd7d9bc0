/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "base/arena.h"

static void test_push_keeps_items(void **state)
{
	struct graft_arena *arena = graft_arena_new(1 << 20);
	uint32_t *items = NULL;
	size_t n = 0;

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

	assert_non_null(graft_arena_alloc(arena, 200));
	assert_false(graft_arena_failed(arena));
	assert_null(graft_arena_alloc(arena, 100));
	assert_true(graft_arena_failed(arena));
	assert_null(graft_arena_alloc(arena, SIZE_MAX));
	assert_null(graft_arena_list(arena, SIZE_MAX / 2, 8));
	graft_arena_free(arena);
}

/* What it holds, not what has been asked for. */
static void test_size(void **state)
{
	struct graft_arena *arena = graft_arena_new(1 << 20);
	size_t before = graft_arena_size(arena), small;

	assert_true(before < 100);
	assert_non_null(graft_arena_alloc(arena, 1));
	small = graft_arena_size(arena);
	assert_true(small > 16384);
	assert_non_null(graft_arena_alloc(arena, 1000));
	assert_int_equal(graft_arena_size(arena), small);
	assert_non_null(graft_arena_alloc(arena, 100000));
	assert_true(graft_arena_size(arena) >= small + 100000);
	graft_arena_free(arena);
}

static void test_strings(void **state)
{
	struct graft_arena *arena = graft_arena_new(4096);

	assert_string_equal(graft_arena_printf(arena, "%s-%d", "a", 7), "a-7");
	assert_string_equal(graft_arena_strndup(arena, "abcdef", 3), "abc");
	assert_null(graft_arena_strdup(arena, NULL));
	assert_false(graft_arena_failed(arena));
	graft_arena_free(arena);
}

/* Texts of all lengths around the end of a block come out whole, and what is handed out after them is zeroed. */
static void test_printf_at_the_end_of_a_block(void **state)
{
	static char filler[20000];

	memset(filler, 'x', sizeof(filler) - 1);
	for (int length = 16384 - 80; length < 16384 + 80; length++) {
		struct graft_arena *arena = graft_arena_new(1 << 20);
		const char *first, *second;
		const unsigned char *zeroed;

		first = graft_arena_printf(arena, "%.*s", length, filler);
		second = graft_arena_printf(arena, "%s=%d", "forty-two characters that need not fit", 42);
		zeroed = graft_arena_alloc(arena, 16);
		assert_int_equal(strlen(first), length);
		assert_string_equal(second, "forty-two characters that need not fit=42");
		for (size_t i = 0; i < 16; i++)
			assert_int_equal(zeroed[i], 0);
		assert_false(graft_arena_failed(arena));
		graft_arena_free(arena);
	}
}

static void test_printf_beyond_the_maximum(void **state)
{
	struct graft_arena *arena = graft_arena_new(64);

	assert_string_equal(graft_arena_printf(arena, "%s", "0123456789"), "0123456789");
	assert_null(graft_arena_printf(arena, "%050d", 1));
	assert_true(graft_arena_failed(arena));
	graft_arena_free(arena);
}

static void test_join(void **state)
{
	struct graft_arena *arena = graft_arena_new(4096);

	assert_string_equal(graft_arena_join(arena, "/usr/lib64", strlen("/usr/lib"), "libcuda.so"),
			    "/usr/lib/libcuda.so");
	assert_string_equal(graft_arena_join(arena, "/", 0, "etc"), "/etc");
	assert_string_equal(graft_arena_join(arena, "/a", 2, ""), "/a/");
	graft_arena_free(arena);
	arena = graft_arena_new(8);
	assert_null(graft_arena_join(arena, "/usr/lib", strlen("/usr/lib"), "libcuda.so"));
	assert_true(graft_arena_failed(arena));
	graft_arena_free(arena);
}

/* What is kept stays, and what is not goes to the next one; room for more than a block, or than there may be. */
static void test_room(void **state)
{
	struct graft_arena *arena = graft_arena_new(60000);
	char *room, *text;
	const unsigned char *zeroed;

	room = graft_arena_room(arena, 40000);
	assert_non_null(room);
	memset(room, 'x', 40000);
	room[9] = '\0';
	graft_arena_keep(arena, 10);
	text = graft_arena_room(arena, 39000);
	assert_ptr_equal(text, room + 16);
	zeroed = graft_arena_alloc(arena, 100);
	assert_ptr_equal(zeroed, text);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(zeroed[i], 0);
	assert_string_equal(room, "xxxxxxxxx");
	assert_null(graft_arena_room(arena, 60000));
	assert_true(graft_arena_failed(arena));
	assert_null(graft_arena_room(arena, SIZE_MAX));
	graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_keeps_items),
		cmocka_unit_test(test_maximum_is_remembered),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_printf_at_the_end_of_a_block),
		cmocka_unit_test(test_printf_beyond_the_maximum),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
