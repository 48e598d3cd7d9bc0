/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linked_gpus: partitions the available GPUs into sets of the requested size, so that later
 * containers of that size also find good sets (SPEC kubernetes 6.7). Tries every partition if there
 * are few, otherwise the most promising ones.
 */
#include "plan/linked_gpus.h"

#include <string.h>

/*
 * How many cuts are followed at once. For up to eight GPUs that is all of them: there are at most
 * 280, into sets of three. For more than CUT_MAX GPUs, one set is grown instead.
 */
#define CUT_WIDTH 512u
#define CUT_MAX   16u

/* How many bridges two GPUs have in common. */
static size_t count_common(const struct graft_pci_place *a, const struct graft_pci_place *b)
{
	size_t n = 0;

	while (n < a->n_bridges && n < b->n_bridges && strcmp(a->bridges[n], b->bridges[n]) == 0)
		n++;
	return n;
}

/*
 * SPEC kubernetes 6.7. The bridges above a GPU are the host bridge, the root port, and of each
 * switch the upstream and a downstream port.
 */
static uint32_t score_place(const struct graft_pci_place *a, const struct graft_pci_place *b)
{
	size_t common = count_common(a, b);

	if (common > 1 && common == a->n_bridges && common == b->n_bridges)
		return 60;
	if (common > 2)
		return a->n_bridges == common + 1 && b->n_bridges == common + 1 ? 50 : 40;
	if (common > 0)
		return 30;
	return a->has_numa_node && b->has_numa_node && a->numa_node == b->numa_node ? 20 : 10;
}

static uint32_t score_pair(const struct graft_linked_gpus *gpus, size_t a, size_t b)
{
	const struct graft_pci_place *place_a = gpus->places[a], *place_b = gpus->places[b];

	if (!place_a || !place_b)
		return 0;
	return score_place(place_a, place_b) + 100u * (gpus->switches ? 1u : graft_pci_tree_links(place_a, place_b));
}

/* An unfinished cut. Sets are bit masks of places in the list of GPUs. */
struct cut {
	uint32_t left;  /* GPUs that are in no set yet */
	uint32_t total; /* the sum of the scores of its sets */
	uint32_t best;  /* the best full set with all required GPUs; 0: none yet */
	uint32_t best_score;
};

struct linking {
	size_t n;
	uint32_t size;     /* of a set */
	uint32_t required; /* bits */
	uint32_t *scores;  /* of pairs, n * n */
	struct cut *cuts, *next;
	size_t n_cuts, n_next;
};

static uint32_t get_score(const struct linking *linking, size_t a, size_t b)
{
	return linking->scores[a * linking->n + b];
}

static uint32_t score_set(const struct linking *linking, uint32_t set)
{
	uint32_t score = 0;

	for (uint32_t rest = set; rest != 0; rest &= rest - 1) {
		size_t a = (size_t)__builtin_ctz(rest);

		for (uint32_t others = rest & (rest - 1); others != 0; others &= others - 1)
			score += get_score(linking, a, (size_t)__builtin_ctz(others));
	}
	return score;
}

/* Compares two cuts with equally many sets: which one to follow. */
static bool is_better_cut(const struct cut *a, const struct cut *b)
{
	return a->total > b->total;
}

/* Keeps the best CUT_WIDTH cuts, as a heap with the worst one on top. */
static void keep_cut(struct linking *linking, const struct cut *cut)
{
	struct cut *heap = linking->next;
	size_t at, child;

	if (linking->n_next < CUT_WIDTH) {
		at = linking->n_next++;
		for (; at > 0 && is_better_cut(&heap[(at - 1) / 2], cut); at = (at - 1) / 2)
			heap[at] = heap[(at - 1) / 2];
		heap[at] = *cut;
		return;
	}
	if (!is_better_cut(cut, &heap[0]))
		return;
	for (at = 0; (child = 2 * at + 1) < linking->n_next; at = child) {
		if (child + 1 < linking->n_next && is_better_cut(&heap[child], &heap[child + 1]))
			child++;
		if (!is_better_cut(cut, &heap[child]))
			break;
		heap[at] = heap[child];
	}
	heap[at] = *cut;
}

/* Adds a set with this score to a cut. */
static void extend_cut(struct linking *linking, const struct cut *cut, uint32_t set, uint32_t score)
{
	struct cut next = *cut;
	bool full = (uint32_t)__builtin_popcount(set) == linking->size;
	uint32_t required = set & linking->required;

	/* All required GPUs go into one set, which is full. */
	if (required != 0 && (required != linking->required || !full))
		return;
	next.left &= ~set;
	next.total += score;
	if (full && required == linking->required && (next.best == 0 || score > next.best_score)) {
		next.best = set;
		next.best_score = score;
	}
	if (next.best == 0 && (uint32_t)__builtin_popcount(next.left) < linking->size)
		return;
	keep_cut(linking, &next);
}

/*
 * Tries every set of at least `least` GPUs that contains the lowest remaining one. `from` is the
 * first place that may still join `set`.
 */
static void try_sets(struct linking *linking, const struct cut *cut, uint32_t set, uint32_t score, size_t from,
		     uint32_t least)
{
	uint32_t n = (uint32_t)__builtin_popcount(set);

	if (n >= least)
		extend_cut(linking, cut, set, score);
	if (n == linking->size)
		return;
	for (size_t i = from; i < linking->n; i++) {
		uint32_t more = score;

		if (!(cut->left >> i & 1u) || set >> i & 1u)
			continue;
		for (uint32_t rest = set; rest != 0; rest &= rest - 1)
			more += get_score(linking, (size_t)__builtin_ctz(rest), i);
		try_sets(linking, cut, set | 1u << i, more, i + 1, least);
	}
}

/*
 * Gives each cut one more set. `n_sets` is the number of sets that its remaining GPUs have to form.
 * The set with the required GPUs comes first: later, none of the cuts that are followed might have
 * room for a good one.
 */
static void next_sets(struct linking *linking, uint32_t n_sets)
{
	struct cut *swap;

	linking->n_next = 0;
	if (linking->n_cuts == 1 && linking->cuts[0].best == 0 && linking->required != 0) {
		try_sets(linking, &linking->cuts[0], linking->required, score_set(linking, linking->required), 0,
			 linking->size);
		linking->n_cuts = 0;
	}
	for (size_t i = 0; i < linking->n_cuts; i++) {
		const struct cut *cut = &linking->cuts[i];
		uint32_t left = (uint32_t)__builtin_popcount(cut->left), padding = n_sets * linking->size - left;
		size_t lowest = (size_t)__builtin_ctz(cut->left);

		/* No set consists of padding only, because there is less padding than one set needs. */
		try_sets(linking, cut, 1u << lowest, 0, lowest + 1,
			 padding < linking->size ? linking->size - padding : 1);
	}
	swap = linking->cuts;
	linking->cuts = linking->next;
	linking->next = swap;
	linking->n_cuts = linking->n_next;
}

static uint32_t choose_by_cuts(struct linking *linking)
{
	uint32_t n_sets = ((uint32_t)linking->n + linking->size - 1) / linking->size;
	const struct cut *best;

	linking->cuts[0] = (struct cut){ .left = (uint32_t)((1ull << linking->n) - 1) };
	linking->n_cuts = 1;
	for (; n_sets > 0 && linking->n_cuts > 0; n_sets--)
		next_sets(linking, n_sets);
	if (linking->n_cuts == 0)
		return 0;
	best = &linking->cuts[0];
	for (size_t i = 1; i < linking->n_cuts; i++) {
		if (is_better_cut(&linking->cuts[i], best) ||
		    (linking->cuts[i].total == best->total && linking->cuts[i].best_score > best->best_score) ||
		    (linking->cuts[i].total == best->total && linking->cuts[i].best_score == best->best_score &&
		     linking->cuts[i].best < best->best))
			best = &linking->cuts[i];
	}
	return best->best;
}

/* Adds to a set, one by one, the GPU that has the best links to it. */
static uint32_t grow_set(const struct linking *linking, uint32_t set)
{
	while ((uint32_t)__builtin_popcount(set) < linking->size) {
		size_t best = linking->n;
		uint32_t best_score = 0;

		for (size_t i = 0; i < linking->n; i++) {
			uint32_t score = 0;

			if (set >> i & 1u)
				continue;
			for (uint32_t rest = set; rest != 0; rest &= rest - 1)
				score += get_score(linking, (size_t)__builtin_ctz(rest), i);
			if (best == linking->n || score > best_score) {
				best = i;
				best_score = score;
			}
		}
		set |= 1u << best;
	}
	return set;
}

static uint32_t choose_by_growth(const struct linking *linking)
{
	uint32_t best = 0;

	if (linking->required != 0)
		return grow_set(linking, linking->required);
	for (size_t i = 0; i < linking->n; i++) {
		uint32_t set = grow_set(linking, 1u << i);

		if (best == 0 || score_set(linking, set) > score_set(linking, best))
			best = set;
	}
	return best;
}

int graft_choose_linked(const struct graft_linked_gpus *gpus, struct graft_arena *arena, uint32_t *ret_set,
			struct graft_error *err)
{
	struct linking linking = { .n = gpus->n, .size = gpus->size, .required = gpus->required };

	linking.scores = graft_arena_list(arena, linking.n * linking.n, sizeof(*linking.scores));
	linking.cuts = graft_arena_list(arena, CUT_WIDTH, sizeof(*linking.cuts));
	linking.next = graft_arena_list(arena, CUT_WIDTH, sizeof(*linking.next));
	if (!linking.scores || !linking.cuts || !linking.next)
		return graft_fail_memory(err);
	for (size_t i = 0; i < linking.n; i++) {
		for (size_t j = 0; j < i; j++)
			linking.scores[i * linking.n + j] = linking.scores[j * linking.n + i] = score_pair(gpus, i, j);
	}
	*ret_set = linking.n <= CUT_MAX ? choose_by_cuts(&linking) : choose_by_growth(&linking);
	return 0;
}
