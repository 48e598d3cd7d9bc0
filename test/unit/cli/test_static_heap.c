/* SPDX-License-Identifier: Apache-2.0 */
/* static_heap: under names of its own, so that the test has the C library's. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "../unit.h"

/* static_heap.c under names of the test's own (meson.build). */
void *heap_malloc(size_t size);
void *heap_calloc(size_t n, size_t size);
void *heap_realloc(void *block, size_t size);
void heap_free(void *block);

#define OWN_MAPPING ((size_t)128 * 1024)

static unsigned int mappings, unmappings;
static bool map_fails;

/* What mmap() is called in the C library, where file offsets have 64 bits. */
void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t size);

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (map_fails) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	mappings++;
	return __real_mmap64(at, size, protection, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size)
{
	int rc = __real_munmap(at, size);

	unmappings++;
	errno = EINTR;
	return rc;
}

static void test_blocks_are_aligned_apart_and_writable(void **state)
{
	enum { N = 3000 };
	char *blocks[N];

	for (size_t i = 0; i < N; i++) {
		blocks[i] = heap_malloc(i);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
		memset(blocks[i], (int)(i & 0xff), i);
	}
	for (size_t i = 0; i < N; i++) {
		for (size_t at = 0; at < i; at++)
			assert_int_equal((unsigned char)blocks[i][at], i & 0xff);
		if (i > 0)
			assert_ptr_not_equal(blocks[i], blocks[i - 1]);
	}
}

static void test_the_newest_block_is_taken_back(void **state)
{
	char *first = heap_malloc(100), *second, *third;

	second = heap_malloc(200);
	heap_free(second);
	third = heap_malloc(50);
	assert_ptr_equal(second, third);
	/* Not the newest: nothing happens, and what lies behind it is whole. */
	memset(third, 7, 50);
	heap_free(first);
	assert_ptr_not_equal(heap_malloc(100), first);
	assert_int_equal(third[49], 7);
	heap_free(NULL);
}

static void test_calloc_is_zero_even_where_something_was(void **state)
{
	char *block = heap_malloc(500);

	memset(block, 0xff, 500);
	heap_free(block);
	block = heap_calloc(5, 100);
	for (size_t i = 0; i < 500; i++)
		assert_int_equal(block[i], 0);
	errno = 0;
	assert_null(heap_calloc(SIZE_MAX / 2, 3));
	assert_int_equal(errno, ENOMEM);
}

static void test_realloc_keeps_the_bytes(void **state)
{
	char *block = heap_realloc(NULL, 10), *grown, *other;

	memcpy(block, "123456789", 10);
	/* In place at the end, elsewhere behind another block. */
	grown = heap_realloc(block, 1000);
	assert_ptr_equal(grown, block);
	other = heap_malloc(1);
	grown = heap_realloc(block, 2000);
	assert_ptr_not_equal(grown, block);
	assert_string_equal(grown, "123456789");
	assert_ptr_equal(heap_realloc(grown, 5), grown);
	/* Across what has a mapping of its own, up and down. */
	grown = heap_realloc(grown, 1 << 20);
	assert_string_equal(grown, "123456789");
	memset(grown + 10, 1, (1 << 20) - 10);
	grown = heap_realloc(grown, 3 << 20);
	assert_string_equal(grown, "123456789");
	assert_int_equal(grown[(1 << 20) - 1], 1);
	heap_free(grown);
	heap_free(other);
}

/* As strings grow: by one, past the end of the chunk that it lies in. */
static void test_a_block_grows_past_its_chunk(void **state)
{
	char *block = NULL;

	for (size_t size = 1; size < 700000; size += 997) {
		block = heap_realloc(block, size);
		assert_non_null(block);
		block[size - 1] = (char)(size % 101);
		for (size_t at = 1; at <= size; at += 997)
			assert_int_equal(block[at - 1], at % 101);
	}
	heap_free(block);
}

static void test_large_blocks_are_given_back(void **state)
{
	unsigned int before = unmappings;
	void *block = heap_malloc(OWN_MAPPING), *small = heap_malloc(OWN_MAPPING - 16);

	errno = EBADF;
	heap_free(block);
	assert_int_equal(unmappings, before + 1);
	assert_int_equal(errno, EBADF); /* POSIX 2024: free() leaves it alone */
	heap_free(small);
	assert_int_equal(unmappings, before + 1);
}

/* Blocks of arenas: one of the same size comes back, whatever was freed between. */
static void test_freed_blocks_serve_again(void **state)
{
	enum { SIZE = 16 * 1024 };
	char *first = heap_malloc(SIZE), *second = heap_malloc(SIZE), *other = heap_malloc(SIZE + 64),
	     *small = heap_malloc(64), *again[2];

	assert_non_null(heap_malloc(1)); /* none of them is the newest */
	heap_free(small);
	heap_free(first);
	heap_free(other);
	heap_free(second);
	assert_ptr_not_equal(heap_malloc(64), small);
	again[0] = heap_malloc(SIZE);
	again[1] = heap_malloc(SIZE - 8);
	assert_true((again[0] == first && again[1] == second) || (again[0] == second && again[1] == first));
	memset(again[0], 1, SIZE);
	memset(again[1], 2, SIZE);
	assert_int_equal(again[0][SIZE - 1], 1);
	assert_ptr_equal(heap_calloc(1, SIZE + 64), other);
	for (size_t i = 0; i < SIZE + 64; i++)
		assert_int_equal(other[i], 0);
	second = heap_malloc(SIZE);
	assert_true(second != again[0] && second != again[1]);
	/* One that has grown in place is of its new size. */
	second = heap_realloc(second, 2 * SIZE);
	assert_non_null(heap_malloc(1));
	heap_free(second);
	assert_ptr_not_equal(heap_malloc(SIZE), second);
	assert_ptr_equal(heap_malloc(2 * SIZE), second);
}

static void test_memory_ends(void **state)
{
	char *block = heap_malloc(100);

	memset(block, 9, 100);
	map_fails = true;
	assert_null(heap_malloc(OWN_MAPPING * 2));
	assert_null(heap_realloc(block, OWN_MAPPING * 2));
	assert_int_equal(block[99], 9);
	/* What is left of the chunk is still there to be had. */
	while (heap_malloc(1000))
		;
	assert_int_equal(errno, ENOMEM);
	assert_null(heap_malloc(OWN_MAPPING - 17));
	map_fails = false;
	assert_non_null(heap_malloc(1000));
	errno = 0;
	assert_null(heap_malloc(SIZE_MAX));
	assert_int_equal(errno, ENOMEM);
	assert_null(heap_realloc(block, SIZE_MAX - 5));
	assert_int_equal(block[0], 9);
}

static void test_few_mappings(void **state)
{
	unsigned int before = mappings;

	for (size_t i = 0; i < 1000; i++)
		assert_non_null(heap_malloc(224));
	assert_in_range(mappings - before, 0, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_are_aligned_apart_and_writable),
		cmocka_unit_test(test_the_newest_block_is_taken_back),
		cmocka_unit_test(test_calloc_is_zero_even_where_something_was),
		cmocka_unit_test(test_realloc_keeps_the_bytes),
		cmocka_unit_test(test_a_block_grows_past_its_chunk),
		cmocka_unit_test(test_large_blocks_are_given_back),
		cmocka_unit_test(test_freed_blocks_serve_again),
		cmocka_unit_test(test_memory_ends),
		cmocka_unit_test(test_few_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
