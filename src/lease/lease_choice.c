/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_choice: first which GPUs fit, then which are free, then the links. Fails closed: a GPU does
 * not fit if a constraint needs a fact that is not known.
 */
#include "lease/lease_choice.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "plan/linked_gpus.h"

#define HOLDERS_SHOWN 4u
#define HINT_MAX      2048u
#define WHOLE         SIZE_MAX /* instead of the index of a MIG device: the whole GPU */

struct choosing {
	const struct graft_lendable *host;
	const struct graft_lease *leases;
	size_t n_leases;
	const struct graft_claim *claim;
	struct graft_arena *arena;
	struct graft_lease_slot *slots; /* the answer */
	size_t n_slots;
	size_t n_fit; /* GPUs or MIG devices, free or not */
};

/* ---- what fits ---- */

static bool is_excluded(const struct graft_claim *claim, const struct graft_lendable_gpu *gpu)
{
	char index[16];

	(void)snprintf(index, sizeof(index), "%u", gpu->index);
	return graft_is_in(claim->excluded.items, claim->excluded.n, index) ||
	       graft_is_in(claim->excluded.items, claim->excluded.n, gpu->uuid);
}

/* ---- names ---- */

/* Whether a name means the GPU, as a whole. */
static bool is_name_of_gpu(const char *name, const struct graft_lendable_gpu *gpu)
{
	char index[16];

	(void)snprintf(index, sizeof(index), "%u", gpu->index);
	return strcmp(name, "all") == 0 || strcmp(name, index) == 0 || strcmp(name, gpu->uuid) == 0;
}

/* Whether a name, "0:1" or a UUID, means the MIG device. */
static bool is_name_of_mig(const char *name, const struct graft_lendable_gpu *gpu, size_t mig)
{
	char index[32];

	(void)snprintf(index, sizeof(index), "%u:%zu", gpu->index, mig);
	return strcmp(name, index) == 0 || (gpu->migs[mig].uuid && strcmp(name, gpu->migs[mig].uuid) == 0);
}

/* Whether the GPU or one of its MIG devices is named. */
static bool is_gpu_named(const struct graft_claim *claim, const struct graft_lendable_gpu *gpu)
{
	for (size_t i = 0; i < claim->names.n; i++) {
		if (is_name_of_gpu(claim->names.items[i], gpu))
			return true;
		for (size_t k = 0; k < gpu->n_migs; k++) {
			if (is_name_of_mig(claim->names.items[i], gpu, k))
				return true;
		}
	}
	return false;
}

bool graft_lease_fits(const struct graft_claim *claim, const struct graft_lendable_gpu *gpu)
{
	if (gpu->why_not || !gpu->uuid || is_excluded(claim, gpu))
		return false;
	if (claim->kind == GRAFT_CLAIM_NAMED)
		return is_gpu_named(claim, gpu);
	if (gpu->ill)
		return false;
	/* MIG devices are not shared further. */
	if (claim->kind == GRAFT_CLAIM_SHARE ? gpu->replicas == 0 || gpu->mig : gpu->replicas > 0 && !gpu->mig)
		return false;
	if (claim->model && (!gpu->model || !strcasestr(gpu->model, claim->model)))
		return false;
	return gpu->memory_mib >= claim->memory_mib;
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

/* By a lease, or by a process without one. */
static bool is_gpu_held(const struct choosing *choosing, const struct graft_lendable_gpu *gpu)
{
	return gpu->in_use ||
	       graft_lease_next_of_gpu(choosing->leases, choosing->n_leases, 0, gpu->uuid) < choosing->n_leases;
}

/* Whether the MIG device or its whole GPU is held, or a process without a lease uses it. */
static bool is_mig_held(const struct choosing *choosing, const struct graft_lendable_gpu *on, size_t place)
{
	const char *gpu = on->uuid, *mig = on->migs[place].uuid;

	if (on->migs[place].in_use)
		return true;
	for (size_t i = 0; i < choosing->n_leases; i++) {
		const struct graft_lease *lease = &choosing->leases[i];

		for (size_t k = 0; k < lease->n_slots; k++) {
			if (strcmp(lease->slots[k].gpu, gpu) == 0 &&
			    (!lease->slots[k].mig || strcmp(lease->slots[k].mig, mig) == 0))
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

/* The lowest free slot of a shared GPU. */
static uint32_t find_free_slot(const struct choosing *choosing, const struct graft_lendable_gpu *gpu)
{
	return 1 + (uint32_t)__builtin_ctzll(~held_slots(choosing->leases, choosing->n_leases, gpu->uuid));
}

/* ---- refusals ---- */

/* "GPU 0, 1: uid 0 (container 3f2a, 2 h)" for a lease. */
static void describe_holder(const struct choosing *choosing, const struct graft_lease *lease, uint64_t now,
			    struct graft_buffer *out)
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
	graft_lease_describe(lease, now, out);
}

static int fail_busy(const struct choosing *choosing, const char *noun, size_t n_free, uint64_t now,
		     struct graft_error *err)
{
	struct graft_buffer hint = { .max = HINT_MAX };
	const char *text;
	size_t n = 0;

	for (size_t i = 0; i < choosing->n_leases; i++, n++) {
		if (n >= HOLDERS_SHOWN)
			continue;
		graft_buffer_string(&hint, n == 0 ? "Held: " : "; ");
		describe_holder(choosing, &choosing->leases[i], now, &hint);
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

static bool may_take(const struct choosing *choosing, const struct graft_lendable_gpu *gpu, bool free_only)
{
	if (choosing->claim->kind != GRAFT_CLAIM_SHARE && gpu->mig)
		return false;
	if (!graft_lease_fits(choosing->claim, gpu) || !free_only)
		return graft_lease_fits(choosing->claim, gpu);
	return choosing->claim->kind == GRAFT_CLAIM_SHARE
		   ? graft_lease_free_slots(choosing->leases, choosing->n_leases, gpu) > 0 &&
			 !graft_lease_user_of(choosing->leases, choosing->n_leases, gpu) &&
			 !find_other_user(choosing, gpu->uuid)
		   : !is_gpu_held(choosing, gpu);
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
	}
	return best;
}

/*
 * Without same=, every GPU that fits is near every other: the first group that is found is all of
 * them.
 */
static size_t find_every(const struct choosing *choosing, bool free_only, const struct graft_lendable_gpu **ret_group)
{
	size_t n = 0;

	for (size_t first = 0; first < choosing->host->n_gpus && n == 0; first++)
		n = collect_group(choosing, first, free_only, ret_group);
	return n;
}

/* The free GPUs among those that fit and are near each other. */
static int find_gpus_near(struct choosing *choosing, const char *noun, uint64_t now,
			  const struct graft_lendable_gpu **ret_group, size_t *ret_n, struct graft_error *err)
{
	size_t (*find)(const struct choosing *, bool,
		       const struct graft_lendable_gpu **) = choosing->claim->same == GRAFT_SAME_NOTHING ? find_every
													 : find_near;

	choosing->n_fit = find(choosing, false, ret_group);
	if (choosing->n_fit < choosing->claim->count)
		return fail_few(choosing, noun, err);
	*ret_n = find(choosing, true, ret_group);
	return *ret_n < choosing->claim->count ? fail_busy(choosing, noun, *ret_n, now, err) : 0;
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

static int choose_gpus(struct choosing *choosing, uint64_t now, struct graft_error *err)
{
	const struct graft_lendable_gpu *group[GRAFT_LINKED_GPUS_MAX];
	const struct graft_pci_place *places[GRAFT_LINKED_GPUS_MAX];
	struct graft_linked_gpus linked = { .places = places, .switches = choosing->host->switches };
	uint32_t set = 0;

	linked.size = choosing->claim->count;
	if (find_gpus_near(choosing, "GPU", now, group, &linked.n, err) < 0)
		return -1;
	sort_by_idleness(group, linked.n);
	for (size_t i = 0; i < linked.n; i++)
		places[i] = group[i]->place;
	if (graft_choose_linked(&linked, choosing->arena, &set, err) < 0)
		return -1;
	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		if (is_chosen(group, set, &choosing->host->gpus[i]))
			choosing->slots[choosing->n_slots++].gpu = choosing->host->gpus[i].uuid;
	}
	return 0;
}

static bool fits_mig(const struct graft_claim *claim, const struct graft_lendable_mig *mig)
{
	return mig->uuid && !mig->ill && mig->profile && strcmp(mig->profile, claim->profile) == 0;
}

/* ---- what it had before ---- */

/*
 * The GPU with that UUID (*ret_mig is WHOLE), or the GPU of the MIG device with it. NULL: there is
 * none.
 */
static const struct graft_lendable_gpu *find_chosen_device(const struct choosing *choosing, const char *uuid,
							   size_t *ret_mig)
{
	*ret_mig = WHOLE;
	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &choosing->host->gpus[i];

		if (gpu->uuid && strcmp(gpu->uuid, uuid) == 0)
			return gpu;
		for (size_t k = 0; k < gpu->n_migs; k++) {
			if (!gpu->migs[k].uuid || strcmp(gpu->migs[k].uuid, uuid) != 0)
				continue;
			*ret_mig = k;
			return gpu;
		}
	}
	return NULL;
}

static bool may_have_again(const struct choosing *choosing, const struct graft_lendable_gpu *gpu, size_t mig)
{
	if (choosing->claim->kind == GRAFT_CLAIM_MIG)
		return mig != WHOLE && graft_lease_fits(choosing->claim, gpu) &&
		       fits_mig(choosing->claim, &gpu->migs[mig]) && !is_mig_held(choosing, gpu, mig);
	return mig == WHOLE && may_take(choosing, gpu, true);
}

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
		size_t mig;
		bool near = true;

		group[i] = find_chosen_device(choosing, claim->previous.items[i], &mig);
		for (size_t k = 0; k < i && near && group[i]; k++)
			near = is_near(choosing, group[k], group[i]);
		if (!group[i] || !near || !may_have_again(choosing, group[i], mig)) {
			choosing->n_slots = 0;
			return false;
		}
		choosing->slots[choosing->n_slots++] = (struct graft_lease_slot){
			.gpu = group[i]->uuid,
			.mig = mig == WHOLE ? NULL : group[i]->migs[mig].uuid,
			.replica = claim->kind == GRAFT_CLAIM_SHARE ? find_free_slot(choosing, group[i]) : 0,
		};
	}
	return true;
}

/* ---- slots of shared GPUs ---- */

/* Takes the lowest free slot of the GPU of which most slots are held, or fewest. */
static void take_slot(struct choosing *choosing, const struct graft_lendable_gpu **group, size_t n)
{
	uint32_t best_free = 0;
	size_t best = n;

	for (size_t i = 0; i < n; i++) {
		uint32_t free = group[i] ? graft_lease_free_slots(choosing->leases, choosing->n_leases, group[i]) : 0;

		if (!group[i] || (best < n && (choosing->claim->spread ? free <= best_free : free >= best_free)))
			continue;
		best = i;
		best_free = free;
	}
	choosing->slots[choosing->n_slots++] = (struct graft_lease_slot){
		.gpu = group[best]->uuid,
		.replica = find_free_slot(choosing, group[best]),
	};
	group[best] = NULL;
}

/* A program finds one daemon, which serves one GPU, and gets at most its slot's share of that. */
static int check_mps(const struct choosing *choosing, struct graft_error *err)
{
	const struct graft_claim *claim = choosing->claim;

	if (claim->count > 1) {
		(void)graft_fail(err, GRAFT_UNSUPPORTED, 0, "a program can use one GPU that is shared by MPS, not %u",
				 claim->count);
		return graft_with_hint(err, "Ask for 'share', or set graft.leases.sharing to \"time-slice\".");
	}
	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &choosing->host->gpus[i];

		if (graft_lease_fits(claim, gpu) && claim->limit_percent <= 100 / gpu->replicas &&
		    claim->limit_mib <= (claim->limit_mib > 0 ? gpu->memory_mib / gpu->replicas : 0))
			return 0;
	}
	if (claim->limit_mib == 0 && claim->limit_percent == 0)
		return 0;
	(void)graft_fail(err, GRAFT_UNSUPPORTED, 0, "mem= and sm= cannot exceed a slot's share of the GPU");
	return graft_with_hint(err, "Leave them out to get the whole share; 'nvidia-ctk lease list' shows the slots.");
}

/* SECURITY: never promise a limit that nothing enforces. */
static int check_limits(const struct choosing *choosing, struct graft_error *err)
{
	if (choosing->host->mps)
		return check_mps(choosing, err);
	if (choosing->claim->limit_mib == 0 && choosing->claim->limit_percent == 0)
		return 0;
	(void)graft_fail(err, GRAFT_UNSUPPORTED, 0,
			 "mem= and sm= have no effect on GPUs that are shared by time slicing");
	return graft_with_hint(err, "Leave them out, or set graft.leases.sharing to \"mps\" in config.toml.");
}

/* Reports slots that are free but that the user cannot have. */
static int fail_other_user(const struct choosing *choosing, struct graft_error *err)
{
	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &choosing->host->gpus[i];
		const struct graft_lease *other = NULL;

		if (graft_lease_fits(choosing->claim, gpu) &&
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

static int choose_slots(struct choosing *choosing, uint64_t now, struct graft_error *err)
{
	const struct graft_lendable_gpu *group[GRAFT_LINKED_GPUS_MAX];
	size_t n = 0;

	if (check_limits(choosing, err) < 0)
		return -1;
	if (find_gpus_near(choosing, "shared GPU", now, group, &n, err) < 0)
		return err && err->status == GRAFT_BUSY ? fail_other_user(choosing, err) : -1;
	if (take_previous(choosing))
		return 0;
	while (choosing->n_slots < choosing->claim->count)
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
		const char *uuid = gpu->migs[i].uuid;

		n += uuid && (is_mig_held(choosing, gpu, i) || has_slot(choosing, uuid));
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
		size_t used = graft_lease_fits(choosing->claim, gpu) ? count_used(choosing, gpu) : 0;

		for (size_t k = 0; graft_lease_fits(choosing->claim, gpu) && k < gpu->n_migs; k++) {
			const struct graft_lendable_mig *mig = &gpu->migs[k];

			if (!fits_mig(choosing->claim, mig) || is_mig_held(choosing, gpu, k) ||
			    has_slot(choosing, mig->uuid) ||
			    (best && (choosing->claim->spread ? used >= best_used : used <= best_used)))
				continue;
			best = gpu;
			best_mig = mig;
			best_used = used;
		}
	}
	if (!best)
		return false;
	choosing->slots[choosing->n_slots++] = (struct graft_lease_slot){ .gpu = best->uuid, .mig = best_mig->uuid };
	return true;
}

static int choose_migs(struct choosing *choosing, uint64_t now, struct graft_error *err)
{
	for (size_t i = 0; i < choosing->host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &choosing->host->gpus[i];

		for (size_t k = 0; graft_lease_fits(choosing->claim, gpu) && k < gpu->n_migs; k++)
			choosing->n_fit += fits_mig(choosing->claim, &gpu->migs[k]);
	}
	if (choosing->n_fit < choosing->claim->count)
		return fail_few(choosing, "MIG device", err);
	while (choosing->n_slots < choosing->claim->count) {
		if (!take_mig(choosing))
			return fail_busy(choosing, "MIG device", choosing->n_slots, now, err);
	}
	return 0;
}

/* ---- GPUs by name ---- */

static bool is_gpu_of_names(const struct graft_claim *claim, const struct graft_lendable_gpu *gpu)
{
	for (size_t i = 0; i < claim->names.n; i++) {
		if (is_name_of_gpu(claim->names.items[i], gpu))
			return true;
	}
	return false;
}

static bool is_mig_of_names(const struct graft_claim *claim, const struct graft_lendable_gpu *gpu, size_t mig)
{
	for (size_t i = 0; i < claim->names.n; i++) {
		if (is_name_of_mig(claim->names.items[i], gpu, mig))
			return true;
	}
	return false;
}

/* Calls `take` once for each device that is named. `mig` WHOLE: the GPU, or a slot of it. */
static void for_each_named(const struct graft_lendable *host, const struct graft_claim *claim,
			   void (*take)(void *arg, const struct graft_lendable_gpu *gpu, size_t mig), void *arg)
{
	for (size_t i = 0; i < host->n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &host->gpus[i];

		if (gpu->why_not || !gpu->uuid)
			continue;
		if (is_gpu_of_names(claim, gpu)) {
			take(arg, gpu, WHOLE);
			continue;
		}
		for (size_t k = 0; k < gpu->n_migs; k++) {
			if (gpu->migs[k].uuid && is_mig_of_names(claim, gpu, k))
				take(arg, gpu, k);
		}
	}
}

static void count_one(void *arg, const struct graft_lendable_gpu *gpu, size_t mig)
{
	uint32_t *n = arg;

	(void)gpu;
	(void)mig;
	(*n)++;
}

uint32_t graft_lease_count_named(const struct graft_lendable *host, const struct graft_claim *claim)
{
	uint32_t n = 0;

	for_each_named(host, claim, count_one, &n);
	return n;
}

static void take_named(void *arg, const struct graft_lendable_gpu *gpu, size_t mig)
{
	struct choosing *choosing = arg;
	bool shared = mig == WHOLE && !gpu->mig && gpu->replicas > 0;
	bool free = shared ? graft_lease_free_slots(choosing->leases, choosing->n_leases, gpu) > 0 &&
				 !graft_lease_user_of(choosing->leases, choosing->n_leases, gpu) &&
				 !find_other_user(choosing, gpu->uuid)
		    : mig != WHOLE ? !is_mig_held(choosing, gpu, mig)
				   : !is_gpu_held(choosing, gpu);

	choosing->n_fit++;
	if (!free || choosing->n_slots == GRAFT_LEASE_SLOTS_MAX)
		return;
	choosing->slots[choosing->n_slots++] =
	    (struct graft_lease_slot){ .gpu = gpu->uuid,
				       .mig = mig == WHOLE ? NULL : gpu->migs[mig].uuid,
				       .replica = shared ? find_free_slot(choosing, gpu) : 0 };
}

static int choose_named_gpus(struct choosing *choosing, uint64_t now, struct graft_error *err)
{
	for_each_named(choosing->host, choosing->claim, take_named, choosing);
	if (choosing->n_slots < choosing->n_fit)
		return fail_busy(choosing, "GPU", choosing->n_slots, now, err);
	for (size_t i = 0; choosing->host->mps && choosing->n_slots > 1 && i < choosing->n_slots; i++) {
		if (choosing->slots[i].replica == 0)
			continue;
		(void)graft_fail(err, GRAFT_UNSUPPORTED, 0, "a program can use one GPU that is shared by MPS, not %zu",
				 choosing->n_slots);
		return graft_with_hint(err, "Name one GPU, or set graft.leases.sharing to \"time-slice\".");
	}
	return 0;
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
		.host = host, .leases = leases, .n_leases = n_leases, .claim = claim, .arena = arena
	};
	int rc = -1;

	choosing.slots = graft_arena_list(arena, GRAFT_LEASE_SLOTS_MAX, sizeof(*choosing.slots));
	if (!choosing.slots)
		return graft_fail_memory(err);
	switch (claim->kind) {
	case GRAFT_CLAIM_ANY:
		rc = take_previous(&choosing) ? 0 : choose_gpus(&choosing, now, err);
		break;
	case GRAFT_CLAIM_MIG:
		rc = take_previous(&choosing) ? 0 : choose_migs(&choosing, now, err);
		break;
	case GRAFT_CLAIM_SHARE:
		rc = choose_slots(&choosing, now, err);
		break;
	case GRAFT_CLAIM_NAMED:
		rc = choose_named_gpus(&choosing, now, err);
		break;
	case GRAFT_CLAIM_LEASE:
		rc = choose_lease(&choosing, err);
		break;
	}
	*ret_slots = choosing.slots;
	*ret_n = choosing.n_slots;
	return rc;
}
