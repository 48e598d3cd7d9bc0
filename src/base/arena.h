/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena: memory for what lives and dies together (an inventory, a request, a plan). Build, read, free once.
 *
 * An arena has a stated maximum. A failed allocation returns NULL and is remembered: a builder may ignore single
 * results and ask graft_arena_failed() once at the end ("sticky").
 */
#ifndef GRAFT_BASE_ARENA_H
#define GRAFT_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct graft_arena;

/* A new empty arena that hands out at most `max` bytes, or NULL. */
struct graft_arena *graft_arena_new(size_t max);
/* Frees the arena and all that came from it. NULL is fine. Returns NULL. */
struct graft_arena *graft_arena_free(struct graft_arena *arena);
/* `size` zeroed bytes aligned for any object, or NULL (memory or maximum exhausted). size 0 gives a valid pointer. */
void *graft_arena_alloc(struct graft_arena *arena, size_t size);
/* Copies. A NULL string gives NULL without being a failure. */
char *graft_arena_strdup(struct graft_arena *arena, const char *s);
char *graft_arena_strndup(struct graft_arena *arena, const char *s, size_t n);
void *graft_arena_memdup(struct graft_arena *arena, const void *bytes, size_t n);
__attribute__((format(printf, 2, 3))) char *graft_arena_printf(struct graft_arena *arena, const char *format, ...);
/* "directory/name", of which `directory` is its first `length` bytes: what a printf of "%s/%s" gives, for the paths of which there are hundreds. */
char *graft_arena_join(struct graft_arena *arena, const char *directory, size_t length, const char *name);
/*
 * For a text whose length shows while it is written: `size` bytes as they come, aligned as those of graft_arena_alloc(), or NULL. Nobody owns them until
 * graft_arena_keep() keeps the first `n` of them; until then nothing else is asked of the arena, or they are not used any more.
 */
void *graft_arena_room(struct graft_arena *arena, size_t size);
void graft_arena_keep(struct graft_arena *arena, size_t n);
/* Whether any allocation failed since the arena was made. */
bool graft_arena_failed(const struct graft_arena *arena);

/*
 * Lists are plain arrays: `T *items; size_t n;`. Their capacity is not stored: it is n rounded up to a power of two,
 * so every list that is pushed to must come from these two functions.
 * graft_arena_list: a zeroed array for n items (n 0 gives NULL and is no failure).
 * graft_arena_push: room for one more zeroed item at the end; returns it, or NULL (list unchanged).
 *	struct graft_gpu *gpu = graft_arena_push(arena, &inv->gpus, &inv->n_gpus, sizeof(*gpu));
 */
void *graft_arena_list(struct graft_arena *arena, size_t n, size_t item_size);
void *graft_arena_push(struct graft_arena *arena, void *items_pointer, size_t *n, size_t item_size);
/* Appends a copy of `s` to a list of strings. Returns the copy or NULL. */
char *graft_arena_push_string(struct graft_arena *arena, const char ***items, size_t *n, const char *s);

#endif
