/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_preferred: chooses devices. Shared and MIG devices one by one, by how much of each device is
 * in use. Whole GPUs by cutting all that are available into sets of the size that is asked for: the
 * best cut is the one after which the next containers of that size find good sets, too (SPEC
 * kubernetes 6.7). Cuts are tried all where there are few, otherwise the most promising ones.
 */
#include "kubernetes/kube_preferred.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

/*
 * So many cuts are followed at once. Of up to eight GPUs that is all of them: there are at most 280,
 * into sets of three. Of more than CUT_MAX GPUs, one set is grown instead.
 */
#define CUT_WIDTH 512u
#define CUT_MAX   16u

static int fail_short(struct graft_error *err)
{
	return graft_fail(err, GRAFT_INVALID, 0, "not enough available devices to satisfy allocation");
}

/* --- by use --- */

/* A device of the host, with its replicas. */
struct share {
	const char *base_id;
	uint32_t total, available; /* replicas */
	uint32_t picked;           /* in this call */
};

struct picking {
	const struct graft_kube_preference *preference;
	enum graft_kube_policy policy;
	struct share *shares;
	size_t n_shares;
	size_t *share_of; /* of each available id */
	bool *taken;      /* each available id */
	const char **ids; /* the answer */
	size_t n_ids;
};

static size_t find_share(const struct picking *picking, const char *base_id)
{
	size_t i = 0;

	while (i < picking->n_shares && strcmp(picking->shares[i].base_id, base_id) != 0)
		i++;
	return i;
}

static void count_total(struct picking *picking, const struct graft_kube_resource *resource)
{
	for (size_t i = 0; i < resource->n_devices; i++) {
		size_t at = find_share(picking, resource->devices[i].base_id);

		if (at == picking->n_shares)
			picking->shares[picking->n_shares++] =
			    (struct share){ .base_id = resource->devices[i].base_id };
		picking->shares[at].total++;
	}
}

static int count_available(struct picking *picking, const struct graft_kube_resource *resource, struct graft_error *err)
{
	const struct graft_kube_preference *preference = picking->preference;

	for (size_t i = 0; i < preference->n_available; i++) {
		const struct graft_kube_device *device = graft_kube_find_device(resource, preference->available[i]);

		if (!device)
			return graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "unknown device: %s", preference->available[i]);
		picking->share_of[i] = find_share(picking, device->base_id);
		picking->shares[picking->share_of[i]].available++;
	}
	return 0;
}

static void take(struct picking *picking, size_t i)
{
	struct share *share = &picking->shares[picking->share_of[i]];

	picking->taken[i] = true;
	share->available--;
	share->picked++;
	picking->ids[picking->n_ids++] = picking->preference->available[i];
}

/* Returns whether taking from `a` fits the policy better than taking from `b`. */
static bool is_better_share(const struct picking *picking, const struct share *a, const struct share *b)
{
	uint32_t used_a = a->total - a->available, used_b = b->total - b->available;

	if (used_a != used_b)
		return picking->policy == GRAFT_KUBE_PACKED ? used_a > used_b : used_a < used_b;
	return picking->policy != GRAFT_KUBE_PACKED && a->picked < b->picked;
}

static int take_required(struct picking *picking, struct graft_error *err)
{
	const struct graft_kube_preference *preference = picking->preference;

	for (size_t i = 0; i < preference->n_required; i++) {
		size_t at = 0;

		while (at < preference->n_available &&
		       (picking->taken[at] || strcmp(preference->available[at], preference->required[i]) != 0))
			at++;
		if (at == preference->n_available)
			return fail_short(err);
		take(picking, at);
	}
	for (size_t i = 0; picking->policy == GRAFT_KUBE_DISTINCT && i < picking->n_shares; i++) {
		if (picking->shares[i].picked > 1)
			return fail_short(err);
	}
	return 0;
}

static int take_rest(struct picking *picking, struct graft_error *err)
{
	const struct graft_kube_preference *preference = picking->preference;

	while (picking->n_ids < preference->size) {
		size_t best = preference->n_available;

		for (size_t i = 0; i < preference->n_available; i++) {
			const struct share *share = &picking->shares[picking->share_of[i]];

			if (picking->taken[i] || (picking->policy == GRAFT_KUBE_DISTINCT && share->picked > 0))
				continue;
			if (best == preference->n_available ||
			    is_better_share(picking, share, &picking->shares[picking->share_of[best]]))
				best = i;
		}
		if (best == preference->n_available)
			return fail_short(err);
		take(picking, best);
	}
	return 0;
}

static int pick_by_use(const struct graft_kube_config *config, const struct graft_kube_resource *resource,
		       const struct graft_kube_preference *preference, struct graft_arena *arena, const char **ids,
		       struct graft_error *err)
{
	struct picking picking = { .preference = preference,
				   .policy = config->flags.plugin.sharing_policy,
				   .ids = ids };

	picking.shares = graft_arena_list(arena, resource->n_devices + 1, sizeof(*picking.shares));
	picking.share_of = graft_arena_list(arena, preference->n_available + 1, sizeof(*picking.share_of));
	picking.taken = graft_arena_list(arena, preference->n_available + 1, sizeof(*picking.taken));
	if (!picking.shares || !picking.share_of || !picking.taken)
		return graft_fail_memory(err);
	count_total(&picking, resource);
	if (count_available(&picking, resource, err) < 0 || take_required(&picking, err) < 0)
		return -1;
	return take_rest(&picking, err);
}

/* --- by links --- */

/* How many of the bridges above two GPUs are the same ones. */
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

static const struct graft_pci_place *find_place(const struct graft_pci_tree *tree, const char *bus_id)
{
	for (size_t i = 0; tree && i < tree->n_gpus; i++) {
		if (strcmp(tree->gpus[i].bus_id, bus_id) == 0)
			return &tree->gpus[i];
	}
	return NULL;
}

static uint32_t score_pair(const struct graft_pci_tree *tree, const struct graft_kube_device *a,
			   const struct graft_kube_device *b)
{
	const struct graft_pci_place *place_a = find_place(tree, a->bus_id), *place_b = find_place(tree, b->bus_id);

	if (!place_a || !place_b)
		return 0;
	return score_place(place_a, place_b) +
	       100u * (tree->n_nvswitches > 0 ? 1u : graft_pci_tree_links(place_a, place_b));
}

/* A cut that is being made. Sets are bits of the places in `gpus`. */
struct cut {
	uint32_t left;  /* what is in no set yet */
	uint32_t total; /* the score of all sets */
	uint32_t best;  /* the best full set that holds what is required; 0: none yet */
	uint32_t best_score;
};

struct linking {
	const struct graft_kube_device **gpus; /* available ones, by their index */
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

/* Of two cuts with as many sets: the one to follow. */
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

/* Adds a set, of which `score` is the score, to a cut. */
static void extend_cut(struct linking *linking, const struct cut *cut, uint32_t set, uint32_t score)
{
	struct cut next = *cut;
	bool full = (uint32_t)__builtin_popcount(set) == linking->size;
	uint32_t required = set & linking->required;

	/* What is required comes into one set, which is full. */
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
 * Tries every set that holds the lowest GPU that is left, of `least` GPUs at least. `from` is the
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
 * Gives each cut one more set. `n_sets` is how many it will have to make of what it has left. The first
 * set is the one with what is required: later, none of the cuts that are followed may have room for a
 * good one.
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

		/* Sets of nothing but padding do not occur: there is less of it than one set. */
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

static int compare_by_gpu(const void *a, const void *b)
{
	const struct graft_kube_device *const *x = a, *const *y = b;

	return (*x)->gpu < (*y)->gpu ? -1 : (*x)->gpu > (*y)->gpu;
}

/* Sets places, scores and what is required. */
static int set_up_links(struct linking *linking, const struct graft_kube_resource *resource,
			const struct graft_pci_tree *tree, const struct graft_kube_preference *preference,
			struct graft_error *err)
{
	for (size_t i = 0; i < preference->n_available; i++) {
		const struct graft_kube_device *gpu = graft_kube_find_device(resource, preference->available[i]);

		if (!gpu)
			return graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "unknown device: %s", preference->available[i]);
		linking->gpus[i] = gpu;
	}
	qsort(linking->gpus, linking->n, sizeof(const struct graft_kube_device *), compare_by_gpu);
	for (size_t i = 0; i < linking->n; i++) {
		if (graft_is_in(preference->required, preference->n_required, linking->gpus[i]->id))
			linking->required |= 1u << i;
		for (size_t j = 0; j < i; j++)
			linking->scores[i * linking->n + j] = linking->scores[j * linking->n + i] = score_pair(
			    tree, linking->gpus[i], linking->gpus[j]);
	}
	return (size_t)__builtin_popcount(linking->required) == preference->n_required ? 0 : fail_short(err);
}

static int pick_by_links(const struct graft_kube_resource *resource, const struct graft_pci_tree *tree,
			 const struct graft_kube_preference *preference, struct graft_arena *arena, const char **ids,
			 struct graft_error *err)
{
	struct linking linking = { .n = preference->n_available, .size = preference->size };
	size_t n_ids = preference->n_required;
	uint32_t set;

	linking.gpus = graft_arena_list(arena, linking.n, sizeof(*linking.gpus));
	linking.scores = graft_arena_list(arena, linking.n * linking.n, sizeof(*linking.scores));
	linking.cuts = graft_arena_list(arena, CUT_WIDTH, sizeof(*linking.cuts));
	linking.next = graft_arena_list(arena, CUT_WIDTH, sizeof(*linking.next));
	if (!linking.gpus || !linking.scores || !linking.cuts || !linking.next)
		return graft_fail_memory(err);
	if (set_up_links(&linking, resource, tree, preference, err) < 0)
		return -1;
	set = linking.n <= CUT_MAX ? choose_by_cuts(&linking) : choose_by_growth(&linking);
	if (set == 0)
		return fail_short(err);
	for (size_t i = 0; i < preference->n_required; i++)
		ids[i] = preference->required[i];
	for (set &= ~linking.required; set != 0; set &= set - 1)
		ids[n_ids++] = linking.gpus[__builtin_ctz(set)]->id;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One id twice would count as two devices. */
static int refuse_repeats(const char *const *ids, size_t n, struct graft_arena *arena, struct graft_error *err)
{
	const char **sorted = graft_arena_list(arena, n + 1, sizeof(*sorted));

	if (!sorted)
		return graft_fail_memory(err);
	for (size_t i = 0; i < n; i++)
		sorted[i] = ids[i];
	qsort(sorted, n, sizeof(*sorted), compare_ids);
	for (size_t i = 1; i < n; i++) {
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			return graft_fail(err, GRAFT_INVALID, 0, "device %s is named twice", sorted[i]);
	}
	return 0;
}

int graft_kube_prefer(const struct graft_kube_config *config, const struct graft_kube_resource *resource,
		      const struct graft_pci_tree *tree, const struct graft_kube_preference *preference,
		      struct graft_arena *arena, const char *const **ret_ids, struct graft_error *err)
{
	const char **ids;
	int rc = 0;

	if (preference->n_available < preference->size || preference->n_required > preference->size)
		return fail_short(err);
	if (refuse_repeats(preference->available, preference->n_available, arena, err) < 0 ||
	    refuse_repeats(preference->required, preference->n_required, arena, err) < 0)
		return -1;
	ids = graft_arena_list(arena, (size_t)preference->size + 1, sizeof(*ids));
	if (!ids)
		return graft_fail_memory(err);
	/* A set of GPUs is a word of 32 bits. */
	if (resource->whole_gpus && preference->n_available <= 32 && preference->size > 0)
		rc = pick_by_links(resource, tree, preference, arena, ids, err);
	else
		rc = pick_by_use(config, resource, preference, arena, ids, err);
	*ret_ids = ids;
	return rc;
}
