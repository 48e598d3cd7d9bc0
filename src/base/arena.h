/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena: memory for things that live and die together (an inventory, a request, a plan). Build it,
 * read it, free it once.
 *
 * An arena has a fixed maximum. A failed allocation returns NULL and is remembered, so a builder
 * may ignore the results of single calls and check graft_arena_failed() once at the end ("sticky"
 * errors).
 */
#ifndef GRAFT_BASE_ARENA_H
#define GRAFT_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct graft_arena;

/* Returns a new, empty arena that allocates at most `max` bytes, or NULL. */
struct graft_arena *graft_arena_new(size_t max);
/* Frees the arena and everything allocated from it. NULL is allowed. Always returns NULL. */
struct graft_arena *graft_arena_free(struct graft_arena *arena);
#define auto_arena __attribute__((cleanup(graft_arena_cleanup)))
void graft_arena_cleanup(struct graft_arena **arena);
/*
 * Returns `size` zeroed bytes, aligned for any object, or NULL (out of memory, or maximum reached).
 * A size of 0 gives a valid pointer.
 */
void *graft_arena_alloc(struct graft_arena *arena, size_t size);
/* Copies. A NULL string gives NULL, which is not a failure. */
char *graft_arena_strdup(struct graft_arena *arena, const char *s);
char *graft_arena_strndup(struct graft_arena *arena, const char *s, size_t n);
void *graft_arena_memdup(struct graft_arena *arena, const void *bytes, size_t n);
__attribute__((format(printf, 2, 3))) char *graft_arena_printf(struct graft_arena *arena, const char *format, ...);
/*
 * Returns "directory/name", taking only the first `length` bytes of `directory`. The same as printf
 * with "%s/%s", but faster, for callers that build hundreds of paths.
 */
char *graft_arena_join(struct graft_arena *arena, const char *directory, size_t length, const char *name);
/*
 * For text whose length is only known once it has been written: returns `size` uninitialised bytes,
 * aligned like those of graft_arena_alloc(), or NULL. They are not allocated until
 * graft_arena_keep() keeps the first `n` of them. Any other call that allocates from the arena in
 * between invalidates them.
 */
void *graft_arena_room(struct graft_arena *arena, size_t size);
void graft_arena_keep(struct graft_arena *arena, size_t n);
/* Returns how many bytes of memory the arena holds, used or not. */
size_t graft_arena_size(const struct graft_arena *arena);
/* Returns whether any allocation has failed since the arena was created. */
bool graft_arena_failed(const struct graft_arena *arena);

/*
 * Lists are plain arrays: `T *items; size_t n;`. Their capacity is not stored. It is n rounded up
 * to a power of two, so every list that is pushed to must come from these two functions.
 *
 * graft_arena_list: returns a zeroed array for n items. n = 0 gives NULL, which is not a failure.
 *
 * graft_arena_push: makes room for one more zeroed item at the end and returns it, or NULL with the
 * list unchanged:
 *	struct graft_gpu *gpu = graft_arena_push(arena, &inv->gpus, &inv->n_gpus, sizeof(*gpu));
 */
void *graft_arena_list(struct graft_arena *arena, size_t n, size_t item_size);
void *graft_arena_push(struct graft_arena *arena, void *items_pointer, size_t *n, size_t item_size);
/* Appends a copy of `s` to a list of strings. Returns the copy, or NULL. */
char *graft_arena_push_string(struct graft_arena *arena, const char ***items, size_t *n, const char *s);

#endif
