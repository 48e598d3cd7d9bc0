/* SPDX-License-Identifier: Apache-2.0 */
/* string_map: open addressing, at most half full. */
#include "base/string_map.h"

#include <stdint.h>
#include <string.h>

struct graft_string_map_slot {
	const char *string; /* NULL: free */
	uint32_t hash;
	size_t index;
};

/* FNV-1a. */
static uint32_t hash_of(const char *string)
{
	uint32_t hash = 2166136261u;

	for (; *string != '\0'; string++)
		hash = (hash ^ (unsigned char)*string) * 16777619u;
	return hash;
}

bool graft_string_map_init(struct graft_string_map *map, size_t max, struct graft_arena *arena)
{
	size_t n = 8;

	while (n / 2 < max && n < SIZE_MAX / 4)
		n *= 2;
	*map = (struct graft_string_map){ .slots = graft_arena_list(arena, n, sizeof(*map->slots)),
					  .mask = n - 1,
					  .max = max };
	return map->slots != NULL;
}

/* Returns the slot of the string, or the free one where it belongs. */
static struct graft_string_map_slot *find_string_slot(const struct graft_string_map *map, const char *string,
						      uint32_t hash)
{
	size_t at = hash & map->mask;

	while (map->slots[at].string && (map->slots[at].hash != hash || strcmp(map->slots[at].string, string) != 0))
		at = (at + 1) & map->mask;
	return &map->slots[at];
}

size_t graft_string_map_find(const struct graft_string_map *map, const char *string)
{
	const struct graft_string_map_slot *slot = find_string_slot(map, string, hash_of(string));

	return slot->string ? slot->index : GRAFT_STRING_MAP_NONE;
}

size_t graft_string_map_put(struct graft_string_map *map, const char *string, size_t index)
{
	uint32_t hash = hash_of(string);
	struct graft_string_map_slot *slot = find_string_slot(map, string, hash);

	if (slot->string)
		return slot->index;
	if (map->n < map->max) {
		*slot = (struct graft_string_map_slot){ .string = string, .hash = hash, .index = index };
		map->n++;
	}
	return index;
}
