/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_preferred: chooses devices. Shared and MIG devices one by one, by how much of each device is
 * in use, whole GPUs by their links (plan/linked_gpus.h).
 */
#include "kubernetes/kube_preferred.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "plan/linked_gpus.h"

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

static const struct graft_pci_place *find_place(const struct graft_pci_tree *tree, const char *bus_id)
{
	for (size_t i = 0; tree && i < tree->n_gpus; i++) {
		if (strcmp(tree->gpus[i].bus_id, bus_id) == 0)
			return &tree->gpus[i];
	}
	return NULL;
}

static int compare_by_gpu(const void *a, const void *b)
{
	const struct graft_kube_device *const *x = a, *const *y = b;

	return (*x)->gpu < (*y)->gpu ? -1 : (*x)->gpu > (*y)->gpu;
}

static int pick_by_links(const struct graft_kube_resource *resource, const struct graft_pci_tree *tree,
			 const struct graft_kube_preference *preference, struct graft_arena *arena, const char **ids,
			 struct graft_error *err)
{
	size_t n = preference->n_available, n_ids = preference->n_required;
	const struct graft_kube_device **gpus = graft_arena_list(arena, n, sizeof(*gpus));
	const struct graft_pci_place **places = graft_arena_list(arena, n, sizeof(*places));
	struct graft_linked_gpus linked = {
		.places = places, .n = n, .switches = tree && tree->n_nvswitches > 0, .size = preference->size
	};
	uint32_t set;

	if (!gpus || !places)
		return graft_fail_memory(err);
	for (size_t i = 0; i < n; i++) {
		gpus[i] = graft_kube_find_device(resource, preference->available[i]);
		if (!gpus[i])
			return graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "unknown device: %s", preference->available[i]);
	}
	qsort(gpus, n, sizeof(const struct graft_kube_device *), compare_by_gpu);
	for (size_t i = 0; i < n; i++) {
		places[i] = find_place(tree, gpus[i]->bus_id);
		if (graft_is_in(preference->required, preference->n_required, gpus[i]->id))
			linked.required |= 1u << i;
	}
	if ((size_t)__builtin_popcount(linked.required) != preference->n_required)
		return fail_short(err);
	if (graft_choose_linked(&linked, arena, &set, err) < 0)
		return -1;
	if (set == 0)
		return fail_short(err);
	for (size_t i = 0; i < preference->n_required; i++)
		ids[i] = preference->required[i];
	for (set &= ~linked.required; set != 0; set &= set - 1)
		ids[n_ids++] = gpus[__builtin_ctz(set)]->id;
	return 0;
}

/* One id twice would count as two devices. */
static int refuse_repeats(const char *const *ids, size_t n, struct graft_arena *arena, struct graft_error *err)
{
	const char **sorted = graft_arena_list(arena, n + 1, sizeof(*sorted));

	if (!sorted)
		return graft_fail_memory(err);
	for (size_t i = 0; i < n; i++)
		sorted[i] = ids[i];
	qsort(sorted, n, sizeof(*sorted), graft_compare_strings);
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
	if (resource->whole_gpus && preference->n_available <= GRAFT_LINKED_GPUS_MAX && preference->size > 0)
		rc = pick_by_links(resource, tree, preference, arena, ids, err);
	else
		rc = pick_by_use(config, resource, preference, arena, ids, err);
	*ret_ids = ids;
	return rc;
}
