/* SPDX-License-Identifier: Apache-2.0 */
/* string_map: from strings to indices, for lists that would cost a comparison of each with each. In an arena; nothing is taken out. */
#ifndef GRAFT_BASE_STRING_MAP_H
#define GRAFT_BASE_STRING_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

#define GRAFT_STRING_MAP_NONE ((size_t)-1)

struct graft_string_map {
	struct graft_string_map_slot *slots;
	size_t mask; /* number of slots, a power of two, less one */
	size_t n, max;
};

/* An empty map for at most `max` strings. False: out of memory. */
bool graft_string_map_init(struct graft_string_map *map, size_t max, struct graft_arena *arena);
/* The index of a string; GRAFT_STRING_MAP_NONE when it is not there. */
size_t graft_string_map_find(const struct graft_string_map *map, const char *string);
/*
 * The index that the string has already, or puts it in with `index` and returns that. The string is borrowed. More than `max` strings are not put in: the index is returned
 * all the same.
 */
size_t graft_string_map_put(struct graft_string_map *map, const char *string, size_t index);

#endif
