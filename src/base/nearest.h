/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest: the name that was probably meant, for messages about an unknown one. Pure.
 *
 * Spelling differs in case, in '-', '_', '.' and blanks, and by a few letters that are missing,
 * doubled, wrong or swapped. A name that is not near gives no suggestion: a wrong one is worse than
 * none.
 */
#ifndef GRAFT_BASE_NEAREST_H
#define GRAFT_BASE_NEAREST_H

#include <stddef.h>

#include "base/arena.h"

/* Longer words are compared with nothing: names of commands, options and keys are shorter. */
#define GRAFT_NEAREST_MAX 127

/*
 * Returns how far two words are from each other: 0 if they differ at most in case and separators,
 * else the number of letters to insert, remove, replace or swap; GRAFT_NEAREST_FAR if they are not
 * near each other, which depends on their length.
 */
#define GRAFT_NEAREST_FAR 1000u
unsigned int graft_nearest_distance(const char *word, const char *name);

/* Returns the name nearest to `word`, the first of several; NULL if none is near. */
const char *graft_nearest(const char *const *names, size_t n, const char *word);

/*
 * Returns " (did you mean 'NAME'?)" in the arena, to append to a message; "" if no name is near, or
 * out of memory.
 */
const char *graft_nearest_hint(const char *const *names, size_t n, const char *word, struct graft_arena *arena);

/* For candidates that are not in a list: pass them one by one. Start with a zeroed struct. */
struct graft_nearest_search {
	const char *word;      /* borrowed */
	const char *best;      /* the nearest name so far, borrowed; NULL = none is near */
	unsigned int distance; /* of `best` */
};
void graft_nearest_consider(struct graft_nearest_search *search, const char *name);

#endif
