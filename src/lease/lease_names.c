/* SPDX-License-Identifier: Apache-2.0 */
/* lease_names: asks selection, with an inventory that has what can be lent. */
#include "lease/lease_names.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "plan/select.h"

static int make_inventory(const struct graft_lendable *host, struct graft_arena *arena,
			  struct graft_inventory *ret_inventory, struct graft_error *err)
{
	struct graft_gpu *gpus = graft_arena_list(arena, host->n_gpus, sizeof(*gpus));

	for (size_t i = 0; gpus && i < host->n_gpus; i++) {
		const struct graft_lendable_gpu *from = &host->gpus[i];
		struct graft_gpu *gpu = &gpus[i];

		gpu->index = from->index;
		gpu->uuid.value = from->uuid;
		gpu->bus_id = from->bus_id;
		gpu->mig_devices = graft_arena_list(arena, from->n_migs, sizeof(*gpu->mig_devices));
		for (size_t k = 0; gpu->mig_devices && k < from->n_migs; k++) {
			gpu->mig_devices[k].index = (uint32_t)k;
			gpu->mig_devices[k].gi = from->migs[k].gi;
			gpu->mig_devices[k].ci = from->migs[k].ci;
			gpu->mig_devices[k].uuid.value = from->migs[k].uuid;
		}
		gpu->n_mig_devices = from->n_migs;
	}
	*ret_inventory = (struct graft_inventory){ .gpus = gpus, .n_gpus = host->n_gpus };
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

static int fail_lease_name(const struct graft_device_word *word, const char *why, struct graft_error *err)
{
	(void)graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "%s: %s", word->text, why);
	return graft_with_hint(err, "Run 'nvidia-ctk lease list' to see what this host has.");
}

static bool knows_uuids(const struct graft_selection *selection)
{
	for (size_t i = 0; i < selection->n_gpus; i++) {
		if (!selection->gpus[i]->uuid.value)
			return false;
	}
	return selection->all || selection->n_migs == 0 || selection->migs[0].mig->uuid.value;
}

/* The name of what one word has selected: everything, a MIG device, or a GPU. */
static const char *name_of_selected(const struct graft_device_word *word, const struct graft_selection *selection,
				    struct graft_arena *arena)
{
	if (selection->all)
		return "all";
	if (word->kind == GRAFT_DEVICE_MIG_INDEX)
		return graft_arena_printf(arena, "%u:%u", word->index, word->mig_index);
	if (selection->n_migs > 0)
		return selection->migs[0].mig->uuid.value;
	if (word->kind == GRAFT_DEVICE_UUID)
		return selection->gpus[0]->uuid.value;
	return graft_arena_printf(arena, "%u", selection->gpus[0]->index);
}

static int resolve_word(const struct graft_inventory *inventory, struct graft_device_word *word,
			struct graft_arena *arena, struct graft_strings *names, struct graft_error *err)
{
	const struct graft_request one = { .devices = word, .n_devices = 1 };
	struct graft_selection selection;
	const char *name;

	if (inventory->n_gpus == 0 || graft_select(inventory, &one, arena, &selection, NULL) < 0)
		return graft_arena_failed(arena) ? graft_fail_memory(err)
						 : fail_lease_name(word, "unknown device", err);
	if (!knows_uuids(&selection))
		return fail_lease_name(word, "cannot be held, because its UUID is not known", err);
	name = name_of_selected(word, &selection, arena);
	if (!name)
		return graft_fail_memory(err);
	if (graft_is_in(names->items, names->n, name))
		return 0;
	return graft_arena_push_string(arena, &names->items, &names->n, name) ? 0 : graft_fail_memory(err);
}

static int resolve_names(const struct graft_inventory *inventory, struct graft_request *request,
			 struct graft_arena *arena, struct graft_claim *claim, struct graft_error *err)
{
	struct graft_strings names = { .n = 0 };

	for (size_t i = 0; i < claim->names.n; i++) {
		if (graft_request_devices(request, claim->names.items[i], err) < 0)
			return -1;
	}
	for (size_t i = 0; i < request->n_devices; i++) {
		if (resolve_word(inventory, &request->devices[i], arena, &names, err) < 0)
			return -1;
	}
	claim->names = names;
	return 0;
}

int graft_lease_names_resolve(const struct graft_lendable *host, struct graft_arena *arena, struct graft_claim *claim,
			      struct graft_error *err)
{
	struct graft_inventory inventory;
	struct graft_request *request;
	int rc;

	if (claim->kind != GRAFT_CLAIM_NAMED)
		return 0;
	request = graft_request_new();
	if (!request)
		return graft_fail_memory(err);
	rc = make_inventory(host, arena, &inventory, err);
	if (rc == 0)
		rc = resolve_names(&inventory, request, arena, claim, err);
	graft_request_free(request);
	return rc;
}
