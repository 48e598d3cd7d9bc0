/* SPDX-License-Identifier: Apache-2.0 */
/*
 * string_map: maps strings to indices, for lists where comparing every pair would be too slow.
 * Lives in an arena; entries are never removed.
 */
#ifndef GRAFT_BASE_STRING_MAP_H
#define GRAFT_BASE_STRING_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

#define GRAFT_STRING_MAP_NONE ((size_t)-1)

struct graft_string_map {
	struct graft_string_map_slot *slots;
	size_t mask; /* number of slots, which is a power of two, minus one */
	size_t n, max;
};

/* Initialises an empty map for at most `max` strings. Returns false if out of memory. */
bool graft_string_map_init(struct graft_string_map *map, size_t max, struct graft_arena *arena);
/* Returns the index of a string, or GRAFT_STRING_MAP_NONE. */
size_t graft_string_map_find(const struct graft_string_map *map, const char *string);
/*
 * Returns the index that the string already has; otherwise adds it with `index` and returns that.
 * The string is borrowed. Once the map holds `max` strings, further ones are not added, but `index`
 * is still returned.
 */
size_t graft_string_map_put(struct graft_string_map *map, const char *string, size_t index);

#endif
