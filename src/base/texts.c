/* SPDX-License-Identifier: Apache-2.0 */
/* texts: a short list, compared from the front. */
#include "base/texts.h"

#include <errno.h>

#include "base/arena.h"

#define TEXTS_MAX  64
#define LENGTH_MAX ((size_t)64 << 10)
#define ARENA_MAX  ((size_t)2 << 20)

struct graft_text {
	struct stat st;
	const char *bytes;
	size_t length;
};

struct graft_texts {
	struct graft_arena *arena; /* of this too */
	struct graft_text *items;
	size_t n;
};

struct graft_texts *graft_texts_new(void)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_texts *texts = arena ? graft_arena_alloc(arena, sizeof(*texts)) : NULL;

	if (!texts) {
		(void)graft_arena_free(arena);
		return NULL;
	}
	texts->arena = arena;
	return texts;
}

struct graft_texts *graft_texts_free(struct graft_texts *texts)
{
	if (texts)
		(void)graft_arena_free(texts->arena);
	return NULL;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       is_same_time(&a->st_mtim, &b->st_mtim) && is_same_time(&a->st_ctim, &b->st_ctim);
}

bool graft_texts_find(const struct graft_texts *texts, const struct stat *st, const char **ret_bytes,
		      size_t *ret_length)
{
	for (size_t i = 0; i < texts->n; i++) {
		if (is_same_file(&texts->items[i].st, st)) {
			*ret_bytes = texts->items[i].bytes;
			*ret_length = texts->items[i].length;
			return true;
		}
	}
	return false;
}

int graft_texts_remember(struct graft_texts *texts, const struct stat *st, const char *bytes, size_t length)
{
	struct graft_text *text;
	const char *copy;

	if (texts->n == TEXTS_MAX || length > LENGTH_MAX || (size_t)st->st_size != length)
		return 0;
	copy = graft_arena_memdup(texts->arena, bytes, length + 1);
	text = copy ? graft_arena_push(texts->arena, &texts->items, &texts->n, sizeof(*text)) : NULL;
	if (!text)
		return -ENOMEM;
	*text = (struct graft_text){ .st = *st, .bytes = copy, .length = length };
	return 0;
}
