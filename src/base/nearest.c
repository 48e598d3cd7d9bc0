/* SPDX-License-Identifier: Apache-2.0 */
/* nearest: distance of spellings. Knows no list of names itself. */
#include "base/nearest.h"

#include <ctype.h>
#include <string.h>

/* Copies letters in lower case, without separators; returns the length. */
static size_t fold(const char *word, char folded[GRAFT_NEAREST_MAX + 1])
{
	size_t n = 0;

	for (; *word != '\0'; word++) {
		if (!strchr("-_. \t", *word))
			folded[n++] = (char)tolower((unsigned char)*word);
	}
	folded[n] = '\0';
	return n;
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Edit distance in which swapped neighbours count once. */
static unsigned int count_edits(const char *a, size_t n_a, const char *b, size_t n_b)
{
	unsigned int rows[3][GRAFT_NEAREST_MAX + 1];
	unsigned int *before = rows[0], *last = rows[1], *now = rows[2], *unused;

	for (size_t k = 0; k <= n_b; k++)
		last[k] = before[k] = (unsigned int)k;
	for (size_t i = 1; i <= n_a; i++) {
		now[0] = (unsigned int)i;
		for (size_t k = 1; k <= n_b; k++) {
			now[k] = least(least(last[k] + 1, now[k - 1] + 1), last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				now[k] = least(now[k], before[k - 2] + 1);
		}
		unused = before;
		before = last;
		last = now;
		now = unused;
	}
	return last[n_b];
}

unsigned int graft_nearest_distance(const char *word, const char *name)
{
	char a[GRAFT_NEAREST_MAX + 1], b[GRAFT_NEAREST_MAX + 1];
	size_t n_a, n_b;
	unsigned int distance, allowed;

	if (strlen(word) > GRAFT_NEAREST_MAX || strlen(name) > GRAFT_NEAREST_MAX)
		return GRAFT_NEAREST_FAR;
	n_a = fold(word, a);
	n_b = fold(name, b);
	if (n_a == 0 || n_b == 0)
		return GRAFT_NEAREST_FAR;
	distance = count_edits(a, n_a, b, n_b);
	/* One letter in three, at least one, but never all of the word. */
	allowed = (unsigned int)(n_a < n_b ? n_a : n_b) / 3;
	allowed = allowed == 0 && n_a > 1 && n_b > 1 ? 1 : allowed;
	if (distance <= allowed)
		return distance;
	/* The beginning of a name, of at least three letters. */
	if (n_a >= 3 && n_a < n_b && memcmp(a, b, n_a) == 0)
		return GRAFT_NEAREST_FAR - 1;
	return GRAFT_NEAREST_FAR;
}

void graft_nearest_consider(struct graft_nearest_search *search, const char *name)
{
	unsigned int distance = graft_nearest_distance(search->word, name);

	if (distance < GRAFT_NEAREST_FAR && (!search->best || distance < search->distance)) {
		search->best = name;
		search->distance = distance;
	}
}

const char *graft_nearest(const char *const *names, size_t n, const char *word)
{
	struct graft_nearest_search search = { .word = word };

	for (size_t i = 0; i < n; i++)
		graft_nearest_consider(&search, names[i]);
	return search.best;
}

const char *graft_nearest_hint(const char *const *names, size_t n, const char *word, struct graft_arena *arena)
{
	const char *name = graft_nearest(names, n, word);
	const char *hint = name ? graft_arena_printf(arena, " (did you mean '%s'?)", name) : "";

	return hint ? hint : "";
}
