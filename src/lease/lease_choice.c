/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_choice: first which GPUs fit, then which are free, then the links. Fails closed: a GPU does
 * not fit if a constraint needs a fact that is not known.
 */
#include "lease/lease_choice.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "plan/linked_gpus.h"

#define HOLDERS_SHOWN 4u
#define HINT_MAX      2048u

struct choosing {
	const struct graft_lendable *host;
	const struct graft_lease *leases;
	size_t n_leases;
	const struct graft_claim *claim;
	uint64_t now; /* for messages */
	struct graft_arena *arena;
	struct graft_lease_slot *slots; /* the answer */
	size_t n_slots;
	size_t n_fit; /* GPUs or MIG devices, free or not */
};

/* ---- what fits ---- */

/*
 * A device is a GPU and one of its MIG devices, or NULL for the whole GPU. This is the one at a
 * place from 0 to n_migs.
 */
static const struct graft_lendable_mig *device_at(const struct graft_lendable_gpu *gpu, size_t place)
{
	return place < gpu->n_migs ? &gpu->migs[place] : NULL;
}

bool graft_lendable_has_name(const struct graft_lendable_gpu *gpu, const char *name)
{
	char index[16];

	(void)snprintf(index, sizeof(index), "%u", gpu->index);
	return strcmp(name, index) == 0 || (gpu->uuid && strcmp(name, gpu->uuid) == 0);
}

/* Whether the device itself is named: a MIG device, "0:1" or its UUID, and not its whole GPU. */
static bool is_in_names(const struct graft_strings *names, const struct graft_lendable_gpu *gpu,
			const struct graft_lendable_mig *mig)
{
	bool whole = false, part = false;
	char index[32] = "";

	if (mig)
		(void)snprintf(index, sizeof(index), "%u:%zu", gpu->index, (size_t)(mig - gpu->migs));
	for (size_t i = 0; i < names->n; i++) {
		const char *name = names->items[i];

		whole |= strcmp(name, "all") == 0 || graft_lendable_has_name(gpu, name);
		part |= mig && (strcmp(name, index) == 0 || strcmp(name, mig->uuid) == 0);
	}
	return mig ? part && !whole : whole;
}

/* MIG devices are not shared further. */
static bool is_in_slots(const struct graft_lendable_gpu *gpu)
{
	return gpu->replicas > 0 && !gpu->mig;
}

/* Whether a slot's share of the GPU is as large as the limits that the claim asks for. */
static bool has_share(const struct graft_claim *claim, const struct graft_lendable_gpu *gpu)
{
	return claim->limit_percent <= 100 / gpu->replicas &&
	       (claim->limit_mib == 0 || claim->limit_mib <= gpu->memory_mib / gpu->replicas);
}

/* Whether the device may be lent and meets the claim's constraints, held or not. */
static bool fits(const struct graft_claim *claim, const struct graft_lendable_gpu *gpu,
		 const struct graft_lendable_mig *mig)
{
	if (gpu->why_not || !gpu->uuid || (mig && !mig->uuid))
		return false;
	switch (claim->kind) {
	case GRAFT_CLAIM_ANY:
		if (mig || gpu->mig || gpu->replicas > 0)
			return false;
		break;
	case GRAFT_CLAIM_MIG:
		if (!mig || mig->ill || !mig->profile || strcmp(mig->profile, claim->profile) != 0)
			return false;
		break;
	case GRAFT_CLAIM_SHARE:
		if (mig || !is_in_slots(gpu) || !has_share(claim, gpu))
			return false;
		break;
	case GRAFT_CLAIM_NAMED:
		return is_in_names(&claim->names, gpu, mig);
	case GRAFT_CLAIM_LEASE:
		return false;
	}
	for (size_t i = 0; i < claim->excluded.n; i++) {
		if (graft_lendable_has_name(gpu, claim->excluded.items[i]))
			return false;
	}
	return !gpu->ill && (!claim->model || (gpu->model && strcasestr(gpu->model, claim->model))) &&
	       gpu->memory_mib >= claim->memory_mib;
}

uint32_t graft_lease_count_fitting(const struct graft_lendable *host, const struct graft_claim *claim)
{
	uint32_t n = 0;

	for (size_t i = 0; i < host->n_gpus; i++) {
		for (size_t k = 0; k <= host->gpus[i].n_migs; k++)
			n += fits(claim, &host->gpus[i], device_at(&host->gpus[i], k));
	}
	return n;
}

int graft_lease_list_fitting(const struct graft_lendable *host, const struct graft_claim *claim,
			     struct graft_arena *arena, struct graft_lease_slot **ret_slots, size_t *ret_n,
			     struct graft_error *err)
{
	const size_t n = graft_lease_count_fitting(host, claim);

	*ret_n = 0;
	*ret_slots = graft_arena_list(arena, n, sizeof(**ret_slots));
	if (n > 0 && !*ret_slots)
		return graft_fail_memory(err);
	for (size_t i = 0; i < host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &host->gpus[i];

		for (size_t k = 0; k <= gpu->n_migs; k++) {
			const struct graft_lendable_mig *mig = device_at(gpu, k);

			if (fits(claim, gpu, mig))
				(*ret_slots)[(*ret_n)++] = (struct graft_lease_slot){ .gpu = gpu->uuid,
										      .mig = mig ? mig->uuid : NULL };
		}
	}
	return 0;
}

const struct graft_lendable_gpu *graft_lendable_find(const struct graft_lendable *host, const char *uuid,
						     const struct graft_lendable_mig **ret_mig)
{
	for (size_t i = 0; i < host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &host->gpus[i];

		for (size_t k = 0; k <= gpu->n_migs; k++) {
			const char *own;

			*ret_mig = device_at(gpu, k);
			own = *ret_mig ? (*ret_mig)->uuid : gpu->uuid;
			if (own && strcmp(own, uuid) == 0)
				return gpu;
		}
	}
	return NULL;
}

/* ---- what is held ---- */

static bool holds_gpu(const struct graft_lease *lease, const char *gpu)
{
	for (size_t i = 0; i < lease->n_slots; i++) {
		if (strcmp(lease->slots[i].gpu, gpu) == 0)
			return true;
	}
	return false;
}

size_t graft_lease_next_of_gpu(const struct graft_lease *leases, size_t n_leases, size_t from, const char *gpu)
{
	while (from < n_leases && !holds_gpu(&leases[from], gpu))
		from++;
	return from;
}

const char *graft_lease_user_of(const struct graft_lease *leases, size_t n_leases, const struct graft_lendable_gpu *gpu)
{
	return gpu->in_use && graft_lease_next_of_gpu(leases, n_leases, 0, gpu->uuid) == n_leases ? gpu->in_use : NULL;
}

/* Whether a lease holds the device, or a process without a lease uses it. */
static bool is_device_held(const struct choosing *choosing, const struct graft_lendable_gpu *gpu,
			   const struct graft_lendable_mig *mig)
{
	if (mig ? mig->in_use : gpu->in_use)
		return true;
	for (size_t i = 0; i < choosing->n_leases; i++) {
		const struct graft_lease *lease = &choosing->leases[i];

		for (size_t k = 0; k < lease->n_slots; k++) {
			if (strcmp(lease->slots[k].gpu, gpu->uuid) == 0 &&
			    (!mig || !lease->slots[k].mig || strcmp(lease->slots[k].mig, mig->uuid) == 0))
				return true;
		}
	}
	return false;
}

/* A bit for each slot of the GPU that is held; all bits if the whole GPU is. */
static uint64_t held_slots(const struct graft_lease *leases, size_t n_leases, const char *gpu)
{
	uint64_t held = 0;

	for (size_t i = 0; i < n_leases; i++) {
		for (size_t k = 0; k < leases[i].n_slots; k++) {
			const struct graft_lease_slot *slot = &leases[i].slots[k];

			if (strcmp(slot->gpu, gpu) == 0)
				held |= slot->replica > 0 ? UINT64_C(1) << (slot->replica - 1) : UINT64_MAX;
		}
	}
	return held;
}

uint32_t graft_lease_free_slots(const struct graft_lease *leases, size_t n_leases, const struct graft_lendable_gpu *gpu)
{
	uint32_t held = (uint32_t)__builtin_popcountll(held_slots(leases, n_leases, gpu->uuid));

	return held < gpu->replicas ? gpu->replicas - held : 0;
}

/*
 * SPEC kubernetes 9: an MPS server serves one user at a time; programs of another would wait until
 * all of the first have ended. Returns a lease of the GPU whose programs run as another user.
 */
static const struct graft_lease *find_other_user(const struct choosing *choosing, const char *gpu)
{
	for (size_t i = 0; choosing->host->mps && choosing->claim->has_user && i < choosing->n_leases; i++) {
		const struct graft_lease *lease = &choosing->leases[i];

		if (lease->has_user && lease->user != choosing->claim->user && holds_gpu(lease, gpu))
			return lease;
	}
	return NULL;
}

static bool is_free(const struct choosing *choosing, const struct graft_lendable_gpu *gpu,
		    const struct graft_lendable_mig *mig)
{
	if (mig || !is_in_slots(gpu))
		return !is_device_held(choosing, gpu, mig);
	return graft_lease_free_slots(choosing->leases, choosing->n_leases, gpu) > 0 &&
	       !graft_lease_user_of(choosing->leases, choosing->n_leases, gpu) && !find_other_user(choosing, gpu->uuid);
}

/* Adds a free device to the answer; of a shared GPU, its lowest free slot. */
static void take_device(struct choosing *choosing, const struct graft_lendable_gpu *gpu,
			const struct graft_lendable_mig *mig)
{
	struct graft_lease_slot *slot = &choosing->slots[choosing->n_slots++];

	*slot = (struct graft_lease_slot){ .gpu = gpu->uuid, .mig = mig ? mig->uuid : NULL };
	if (!mig && is_in_slots(gpu))
		slot->replica = 1 +
				(uint32_t)__builtin_ctzll(~held_slots(choosing->leases, choosing->n_leases, gpu->uuid));
}

/* ---- refusals ---- */

/* "GPU 0, 1: uid 0 (container 3f2a, 2 h)" for a lease. */
static void describe_holder(const struct choosing *choosing, const struct graft_lease *lease, struct graft_buffer *out)
{
	const char *separator = "GPU ";

	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &choosing->host->gpus[i];

		if (!gpu->uuid || !holds_gpu(lease, gpu->uuid))
			continue;
		graft_buffer_printf(out, "%s%u", separator, gpu->index);
		separator = ", ";
	}
	graft_buffer_string(out, " by ");
	graft_lease_describe(lease, choosing->now, out);
}

static int fail_busy(const struct choosing *choosing, const char *noun, size_t n_free, struct graft_error *err)
{
	struct graft_buffer hint = { .max = HINT_MAX };
	const char *text;
	size_t n = 0;

	for (size_t i = 0; i < choosing->n_leases; i++, n++) {
		if (n >= HOLDERS_SHOWN)
			continue;
		graft_buffer_string(&hint, n == 0 ? "Held: " : "; ");
		describe_holder(choosing, &choosing->leases[i], &hint);
	}
	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &choosing->host->gpus[i];
		const char *user = graft_lease_user_of(choosing->leases, choosing->n_leases, gpu);

		if (user && n++ < HOLDERS_SHOWN)
			graft_buffer_printf(&hint, "%sGPU %u by %s without a lease", n == 1 ? "Held: " : "; ",
					    gpu->index, user);
	}
	if (n > HOLDERS_SHOWN)
		graft_buffer_printf(&hint, "; %zu more", n - HOLDERS_SHOWN);
	graft_buffer_string(&hint, n > 0 ? ". See 'nvidia-ctk lease list'." : "See 'nvidia-ctk lease list'.");
	text = graft_arena_strdup(choosing->arena, graft_buffer_text(&hint));
	graft_buffer_done(&hint);
	(void)graft_fail(err, GRAFT_BUSY, 0, "%u %s%s asked for, %zu of %zu %s free", choosing->claim->count, noun,
			 choosing->claim->count == 1 ? " was" : "s were", n_free, choosing->n_fit,
			 n_free == 1 ? "is" : "are");
	return text ? graft_with_hint(err, text) : -1;
}

static int fail_few(const struct choosing *choosing, const char *noun, struct graft_error *err)
{
	(void)graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0,
			 "%u %s%s asked for, but this host has %zu that can be lent and fit", choosing->claim->count,
			 noun, choosing->claim->count == 1 ? " was" : "s were", choosing->n_fit);
	return graft_with_hint(err, "Run 'nvidia-ctk lease list' to see what this host has.");
}

/* ---- whole GPUs ---- */

static bool is_near(const struct choosing *choosing, const struct graft_lendable_gpu *a,
		    const struct graft_lendable_gpu *b)
{
	const struct graft_pci_place *x = a->place, *y = b->place;

	if (choosing->claim->same == GRAFT_SAME_NOTHING || a == b)
		return true;
	if (choosing->claim->same == GRAFT_SAME_NVLINK && choosing->host->switches)
		return true;
	if (!x || !y)
		return false;
	if (choosing->claim->same == GRAFT_SAME_NVLINK)
		return graft_pci_tree_links(x, y) > 0;
	if (choosing->claim->same == GRAFT_SAME_NUMA)
		return x->has_numa_node && y->has_numa_node && x->numa_node == y->numa_node;
	return x->n_bridges > 1 && y->n_bridges > 1 && strcmp(x->bridges[0], y->bridges[0]) == 0 &&
	       strcmp(x->bridges[1], y->bridges[1]) == 0;
}

static bool may_take(const struct choosing *choosing, const struct graft_lendable_gpu *gpu, bool free_only)
{
	return fits(choosing->claim, gpu, NULL) && (!free_only || is_free(choosing, gpu, NULL));
}

/*
 * Collects GPUs that are all near each other and near the one at `first`, by index. Returns how
 * many; `free_only` leaves out those that are held.
 */
static size_t collect_group(const struct choosing *choosing, size_t first, bool free_only,
			    const struct graft_lendable_gpu **group)
{
	const struct graft_lendable_gpu *gpus = choosing->host->gpus;
	size_t n = 0;

	if (!may_take(choosing, &gpus[first], free_only))
		return 0;
	for (size_t i = 0; i < choosing->host->n_gpus && n < GRAFT_LINKED_GPUS_MAX; i++) {
		bool near = may_take(choosing, &gpus[i], free_only) && is_near(choosing, &gpus[first], &gpus[i]);

		for (size_t k = 0; k < n && near; k++)
			near = is_near(choosing, group[k], &gpus[i]);
		if (near)
			group[n++] = &gpus[i];
	}
	return n;
}

/*
 * Finds the smallest group that is large enough, so that larger ones stay whole; of linked GPUs,
 * which are in several groups, the largest, so that there is a choice by links. Returns the number
 * of its GPUs, or the largest number that there is if none is large enough.
 */
static size_t find_near(const struct choosing *choosing, bool free_only, const struct graft_lendable_gpu **ret_group)
{
	const struct graft_lendable_gpu *group[GRAFT_LINKED_GPUS_MAX];
	size_t best = 0;

	for (size_t first = 0; first < choosing->host->n_gpus; first++) {
		size_t n = collect_group(choosing, first, free_only, group);
		bool enough = n >= choosing->claim->count, had = best >= choosing->claim->count;
		bool larger = !had || choosing->claim->same == GRAFT_SAME_NVLINK;

		if (n == 0 || (had && !enough) || (larger ? n <= best : n >= best))
			continue;
		best = n;
		memcpy(ret_group, group, n * sizeof(*group));
		/* Without same=, every GPU is near every other: this group has all of them. */
		if (choosing->claim->same == GRAFT_SAME_NOTHING)
			break;
	}
	return best;
}

/* The free GPUs among those that fit and are near each other. */
static int find_gpus_near(struct choosing *choosing, const char *noun, const struct graft_lendable_gpu **ret_group,
			  size_t *ret_n, struct graft_error *err)
{
	choosing->n_fit = find_near(choosing, false, ret_group);
	if (choosing->n_fit < choosing->claim->count)
		return fail_few(choosing, noun, err);
	*ret_n = find_near(choosing, true, ret_group);
	return *ret_n < choosing->claim->count ? fail_busy(choosing, noun, *ret_n, err) : 0;
}

/* The one that has been free for longest first; of equals, the lower index. */
static void sort_by_idleness(const struct graft_lendable_gpu **group, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const struct graft_lendable_gpu *gpu = group[i];
		size_t k = i;

		for (; k > 0 && group[k - 1]->freed > gpu->freed; k--)
			group[k] = group[k - 1];
		group[k] = gpu;
	}
}

static bool is_chosen(const struct graft_lendable_gpu *const *group, uint32_t set, const struct graft_lendable_gpu *gpu)
{
	for (; set != 0; set &= set - 1) {
		if (group[__builtin_ctz(set)] == gpu)
			return true;
	}
	return false;
}

static int choose_gpus(struct choosing *choosing, struct graft_error *err)
{
	const struct graft_lendable_gpu *group[GRAFT_LINKED_GPUS_MAX];
	const struct graft_pci_place *places[GRAFT_LINKED_GPUS_MAX];
	struct graft_linked_gpus linked = { .places = places, .switches = choosing->host->switches };
	uint32_t set = 0;

	linked.size = choosing->claim->count;
	if (find_gpus_near(choosing, "GPU", group, &linked.n, err) < 0)
		return -1;
	sort_by_idleness(group, linked.n);
	for (size_t i = 0; i < linked.n; i++)
		places[i] = group[i]->place;
	if (graft_choose_linked(&linked, choosing->arena, &set, err) < 0)
		return -1;
	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		if (is_chosen(group, set, &choosing->host->gpus[i]))
			take_device(choosing, &choosing->host->gpus[i], NULL);
	}
	return 0;
}

/* ---- what it had before ---- */

/*
 * Takes everything that the container had before. Returns false, and takes nothing, if it may not
 * have all of that now.
 */
static bool take_previous(struct choosing *choosing)
{
	const struct graft_claim *claim = choosing->claim;
	const struct graft_lendable_gpu *group[GRAFT_LINKED_GPUS_MAX];

	if (claim->previous.n != claim->count || claim->count > GRAFT_LINKED_GPUS_MAX)
		return false;
	for (size_t i = 0; i < claim->count; i++) {
		const struct graft_lendable_mig *mig;
		bool near = true;

		group[i] = graft_lendable_find(choosing->host, claim->previous.items[i], &mig);
		for (size_t k = 0; k < i && near && group[i]; k++)
			near = is_near(choosing, group[k], group[i]);
		if (!group[i] || !near || !fits(claim, group[i], mig) || !is_free(choosing, group[i], mig)) {
			choosing->n_slots = 0;
			return false;
		}
		take_device(choosing, group[i], mig);
	}
	return true;
}

/* ---- slots of shared GPUs ---- */

/* Takes the lowest free slot of the GPU of which most slots are held, or fewest. */
static void take_slot(struct choosing *choosing, const struct graft_lendable_gpu **group, size_t n)
{
	const struct graft_lendable_gpu **best = NULL;
	uint32_t best_free = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t free = group[i] ? graft_lease_free_slots(choosing->leases, choosing->n_leases, group[i]) : 0;

		if (!group[i] || (best && (choosing->claim->spread ? free <= best_free : free >= best_free)))
			continue;
		best = &group[i];
		best_free = free;
	}
	if (!best)
		return;
	take_device(choosing, *best, NULL);
	*best = NULL;
}

/*
 * SECURITY: never promise a limit that nothing enforces. With MPS, a program finds one daemon,
 * which serves one GPU, and gets at most its slot's share of that.
 */
static int check_limits(const struct choosing *choosing, struct graft_error *err)
{
	const struct graft_claim *claim = choosing->claim;

	if (choosing->host->mps && claim->count > 1) {
		(void)graft_fail(err, GRAFT_UNSUPPORTED, 0, "a program can use one GPU that is shared by MPS, not %u",
				 claim->count);
		return graft_with_hint(err, "Ask for 'share', or set graft.leases.sharing to \"time-slice\".");
	}
	if (claim->limit_mib == 0 && claim->limit_percent == 0)
		return 0;
	if (!choosing->host->mps) {
		(void)graft_fail(err, GRAFT_UNSUPPORTED, 0,
				 "mem= and sm= have no effect on GPUs that are shared by time slicing");
		return graft_with_hint(err, "Leave them out, or set graft.leases.sharing to \"mps\" in config.toml.");
	}
	if (graft_lease_count_fitting(choosing->host, claim) > 0)
		return 0;
	(void)graft_fail(err, GRAFT_UNSUPPORTED, 0, "mem= and sm= cannot exceed a slot's share of the GPU");
	return graft_with_hint(err, "Leave them out to get the whole share; 'nvidia-ctk lease list' shows the slots.");
}

/* Reports slots that are free but that the user cannot have. */
static int fail_other_user(const struct choosing *choosing, struct graft_error *err)
{
	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &choosing->host->gpus[i];
		const struct graft_lease *other = NULL;

		if (fits(choosing->claim, gpu, NULL) &&
		    graft_lease_free_slots(choosing->leases, choosing->n_leases, gpu) > 0)
			other = find_other_user(choosing, gpu->uuid);
		if (!other)
			continue;
		(void)graft_fail(
		    err, GRAFT_BUSY, 0,
		    "GPU %u has free slots, but is used by programs of uid %u, and MPS serves one user at a "
		    "time, not uid %u as well",
		    gpu->index, other->user, choosing->claim->user);
		return graft_with_hint(err, "Wait until they have ended, or run the programs as the same user.");
	}
	return -1;
}

static int choose_slots(struct choosing *choosing, struct graft_error *err)
{
	const struct graft_lendable_gpu *group[GRAFT_LINKED_GPUS_MAX];
	size_t n = 0;

	if (check_limits(choosing, err) < 0)
		return -1;
	if (find_gpus_near(choosing, "shared GPU", group, &n, err) < 0)
		return err && err->status == GRAFT_BUSY ? fail_other_user(choosing, err) : -1;
	if (take_previous(choosing))
		return 0;
	for (uint32_t i = 0; i < choosing->claim->count; i++)
		take_slot(choosing, group, n);
	return 0;
}

/* ---- MIG devices ---- */

static bool has_slot(const struct choosing *choosing, const char *mig)
{
	for (size_t i = 0; i < choosing->n_slots; i++) {
		if (strcmp(choosing->slots[i].mig, mig) == 0)
			return true;
	}
	return false;
}

/* The number of the GPU's MIG devices that are held or in the answer. */
static size_t count_used(const struct choosing *choosing, const struct graft_lendable_gpu *gpu)
{
	size_t n = 0;

	for (size_t i = 0; i < gpu->n_migs; i++) {
		const struct graft_lendable_mig *mig = &gpu->migs[i];

		n += mig->uuid && (is_device_held(choosing, gpu, mig) || has_slot(choosing, mig->uuid));
	}
	return n;
}

/*
 * Takes one more MIG device, of the GPU that is used most, or, with spread, least. Returns false if
 * none is free.
 */
static bool take_mig(struct choosing *choosing)
{
	const struct graft_lendable_gpu *best = NULL;
	const struct graft_lendable_mig *best_mig = NULL;
	size_t best_used = 0;

	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &choosing->host->gpus[i];
		size_t used = gpu->uuid ? count_used(choosing, gpu) : 0;

		for (size_t k = 0; k < gpu->n_migs; k++) {
			const struct graft_lendable_mig *mig = &gpu->migs[k];

			if (!fits(choosing->claim, gpu, mig) || !is_free(choosing, gpu, mig) ||
			    has_slot(choosing, mig->uuid) ||
			    (best && (choosing->claim->spread ? used >= best_used : used <= best_used)))
				continue;
			best = gpu;
			best_mig = mig;
			best_used = used;
		}
	}
	if (best)
		take_device(choosing, best, best_mig);
	return best != NULL;
}

static int choose_migs(struct choosing *choosing, struct graft_error *err)
{
	choosing->n_fit = graft_lease_count_fitting(choosing->host, choosing->claim);
	if (choosing->n_fit < choosing->claim->count)
		return fail_few(choosing, "MIG device", err);
	while (choosing->n_slots < choosing->claim->count) {
		if (!take_mig(choosing))
			return fail_busy(choosing, "MIG device", choosing->n_slots, err);
	}
	return 0;
}

/* ---- GPUs by name ---- */

static int choose_named_gpus(struct choosing *choosing, struct graft_error *err)
{
	bool shares = false;

	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &choosing->host->gpus[i];

		for (size_t k = 0; k <= gpu->n_migs; k++) {
			const struct graft_lendable_mig *mig = device_at(gpu, k);

			if (!fits(choosing->claim, gpu, mig))
				continue;
			choosing->n_fit++;
			shares |= !mig && is_in_slots(gpu);
			if (choosing->n_slots < GRAFT_LEASE_SLOTS_MAX && is_free(choosing, gpu, mig))
				take_device(choosing, gpu, mig);
		}
	}
	if (choosing->n_slots < choosing->n_fit)
		return fail_busy(choosing, "GPU", choosing->n_slots, err);
	if (!choosing->host->mps || !shares || choosing->n_slots == 1)
		return 0;
	(void)graft_fail(err, GRAFT_UNSUPPORTED, 0, "a program can use one GPU that is shared by MPS, not %zu",
			 choosing->n_slots);
	return graft_with_hint(err, "Name one GPU, or set graft.leases.sharing to \"time-slice\".");
}

/* ---- leases ---- */

static int fail_lease_user(const struct choosing *choosing, const struct graft_lease *lease, struct graft_error *err)
{
	(void)graft_fail(
	    err, GRAFT_BUSY, 0,
	    "the GPU of lease %s is used by programs of uid %u, and MPS serves one user at a time, not uid "
	    "%u as well",
	    lease->id, find_other_user(choosing, lease->slots[0].gpu)->user, choosing->claim->user);
	return graft_with_hint(err, "Wait until they have ended, or run the programs as the same user.");
}

static int choose_lease(struct choosing *choosing, struct graft_error *err)
{
	for (size_t i = 0; i < choosing->n_leases; i++) {
		const struct graft_lease *lease = &choosing->leases[i];

		if (strcmp(lease->id, choosing->claim->lease) != 0)
			continue;
		memcpy(choosing->slots, lease->slots, lease->n_slots * sizeof(*lease->slots));
		choosing->n_slots = lease->n_slots;
		return lease->n_slots > 0 && lease->slots[0].replica > 0 &&
			       find_other_user(choosing, lease->slots[0].gpu)
			   ? fail_lease_user(choosing, lease, err)
			   : 0;
	}
	(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "lease %s does not exist, or has ended", choosing->claim->lease);
	return graft_with_hint(err, "Run 'nvidia-ctk lease list' to see the leases of this host.");
}

int graft_lease_choose(const struct graft_lendable *host, const struct graft_lease *leases, size_t n_leases,
		       const struct graft_claim *claim, uint64_t now, struct graft_arena *arena,
		       struct graft_lease_slot **ret_slots, size_t *ret_n, struct graft_error *err)
{
	struct choosing choosing = {
		.host = host, .leases = leases, .n_leases = n_leases, .claim = claim, .now = now, .arena = arena
	};
	int rc = -1;

	choosing.slots = graft_arena_list(arena, GRAFT_LEASE_SLOTS_MAX, sizeof(*choosing.slots));
	if (!choosing.slots)
		return graft_fail_memory(err);
	switch (claim->kind) {
	case GRAFT_CLAIM_ANY:
		rc = take_previous(&choosing) ? 0 : choose_gpus(&choosing, err);
		break;
	case GRAFT_CLAIM_MIG:
		rc = take_previous(&choosing) ? 0 : choose_migs(&choosing, err);
		break;
	case GRAFT_CLAIM_SHARE:
		rc = choose_slots(&choosing, err);
		break;
	case GRAFT_CLAIM_NAMED:
		rc = choose_named_gpus(&choosing, err);
		break;
	case GRAFT_CLAIM_LEASE:
		rc = choose_lease(&choosing, err);
		break;
	}
	*ret_slots = choosing.slots;
	*ret_n = choosing.n_slots;
	return rc;
}
