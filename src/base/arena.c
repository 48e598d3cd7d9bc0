/* SPDX-License-Identifier: Apache-2.0 */
/* arena: a chain of blocks. Small allocations come from the newest one. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT  (_Alignof(max_align_t))
#define BLOCK_SIZE ((size_t)16 * 1024)

struct block {
	struct block *next;
	size_t used, size;
	max_align_t bytes[];
};

struct graft_arena {
	struct block *blocks;
	size_t max, total;
	bool failed;
};

struct graft_arena *graft_arena_new(size_t max)
{
	struct graft_arena *arena = calloc(1, sizeof(*arena));

	if (arena)
		arena->max = max;
	return arena;
}

struct graft_arena *graft_arena_free(struct graft_arena *arena)
{
	struct block *block = arena ? arena->blocks : NULL;

	while (block) {
		struct block *next = block->next;

		free(block);
		block = next;
	}
	free(arena);
	return NULL;
}

void graft_arena_cleanup(struct graft_arena **arena)
{
	graft_arena_free(*arena);
}

static void *remember_failure(struct graft_arena *arena)
{
	arena->failed = true;
	return NULL;
}

static size_t align_arena_size(size_t size)
{
	return (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

void *graft_arena_room(struct graft_arena *arena, size_t size)
{
	struct block *block = arena->blocks;
	size_t rounded;

	if (size > SIZE_MAX / 2)
		return remember_failure(arena);
	rounded = align_arena_size(size);
	if (rounded > arena->max - arena->total)
		return remember_failure(arena);
	if (!block || block->size - block->used < rounded) {
		size_t block_size = rounded > BLOCK_SIZE ? rounded : BLOCK_SIZE;

		block = malloc(sizeof(*block) + block_size);
		if (!block)
			return remember_failure(arena);
		block->used = 0;
		block->size = block_size;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	return (char *)block->bytes + block->used;
}

void graft_arena_keep(struct graft_arena *arena, size_t n)
{
	arena->blocks->used += align_arena_size(n);
	arena->total += align_arena_size(n);
}

/* Returns `size` bytes, not zeroed. */
static void *take_arena_bytes(struct graft_arena *arena, size_t size)
{
	void *result;

	size = size == 0 ? ALIGNMENT : size;
	result = graft_arena_room(arena, size);
	if (result)
		graft_arena_keep(arena, size);
	return result;
}

void *graft_arena_alloc(struct graft_arena *arena, size_t size)
{
	void *result = take_arena_bytes(arena, size);

	if (result)
		memset(result, 0, size);
	return result;
}

void *graft_arena_memdup(struct graft_arena *arena, const void *bytes, size_t n)
{
	void *copy = take_arena_bytes(arena, n);

	if (copy && n > 0)
		memcpy(copy, bytes, n);
	return copy;
}

char *graft_arena_strndup(struct graft_arena *arena, const char *s, size_t n)
{
	size_t length;
	char *copy;

	if (!s)
		return NULL;
	length = strnlen(s, n);
	if (length == SIZE_MAX)
		return remember_failure(arena);
	copy = take_arena_bytes(arena, length + 1);
	if (copy) {
		memcpy(copy, s, length);
		copy[length] = '\0';
	}
	return copy;
}

char *graft_arena_strdup(struct graft_arena *arena, const char *s)
{
	return s ? graft_arena_memdup(arena, s, strlen(s) + 1) : NULL;
}

char *graft_arena_printf(struct graft_arena *arena, const char *format, ...)
{
	const struct block *block = arena->blocks;
	size_t room = block ? block->size - block->used : 0;
	va_list args, again;
	char *text = NULL;
	int length;

	/*
	 * Nearly every text fits into the rest of the newest block and is formatted once, in its
	 * final place.
	 */
	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(room > 0 ? (char *)arena->blocks->bytes + block->used : NULL, room, format, args);
	va_end(args);
	if (length >= 0)
		text = take_arena_bytes(arena, (size_t)length + 1);
	else
		arena->failed = true;
	if (text && (size_t)length >= room)
		(void)vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

char *graft_arena_join(struct graft_arena *arena, const char *directory, size_t length, const char *name)
{
	size_t name_size = strlen(name) + 1;
	char *path = take_arena_bytes(arena, length + 1 + name_size);

	if (path) {
		memcpy(path, directory, length);
		path[length] = '/';
		memcpy(path + length + 1, name, name_size);
	}
	return path;
}

size_t graft_arena_size(const struct graft_arena *arena)
{
	size_t size = sizeof(*arena);

	for (const struct block *block = arena->blocks; block; block = block->next)
		size += sizeof(*block) + block->size;
	return size;
}

bool graft_arena_failed(const struct graft_arena *arena)
{
	return arena->failed;
}

static size_t capacity_of(size_t n)
{
	size_t capacity = 1;

	while (capacity < n)
		capacity *= 2;
	return n == 0 ? 0 : capacity;
}

/*
 * Returns an array for n items, zeroed except for the first `n_set`, which are left uninitialised.
 */
static char *take_list(struct graft_arena *arena, size_t n, size_t n_set, size_t item_size)
{
	char *items = n > SIZE_MAX / 4 / item_size ? remember_failure(arena)
						   : take_arena_bytes(arena, capacity_of(n) * item_size);

	if (items)
		memset(items + n_set * item_size, 0, (capacity_of(n) - n_set) * item_size);
	return items;
}

void *graft_arena_list(struct graft_arena *arena, size_t n, size_t item_size)
{
	return n == 0 ? NULL : take_list(arena, n, 0, item_size);
}

void *graft_arena_push(struct graft_arena *arena, void *items_pointer, size_t *n, size_t item_size)
{
	char *items;

	memcpy(&items, items_pointer, sizeof(items));
	if (*n == capacity_of(*n)) {
		char *larger = take_list(arena, *n + 1, *n, item_size);

		if (!larger)
			return NULL;
		if (*n > 0)
			memcpy(larger, items, *n * item_size);
		items = larger;
		memcpy(items_pointer, &items, sizeof(items));
	}
	return items + item_size * (*n)++;
}

char *graft_arena_push_string(struct graft_arena *arena, const char ***items, size_t *n, const char *s)
{
	char *copy = graft_arena_strdup(arena, s);
	char **slot;

	if (!copy)
		return NULL;
	slot = graft_arena_push(arena, items, n, sizeof(*slot));
	if (!slot)
		return NULL;
	*slot = copy;
	return copy;
}
