/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select: what the device words of a request mean on this host. Words are evaluated from left to
 * right; the first that matches no device ends the selection with an error.
 */
#include "plan/select.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "host/discover.h"
#include "request/claim.h"

static bool is_uuid(const struct graft_fact *uuid, const char *text)
{
	return uuid->value && strcasecmp(uuid->value, text) == 0;
}

/* Returns whether a word that refers to a GPU refers to this one. */
static bool means_gpu(const struct graft_device_word *word, const struct graft_gpu *gpu)
{
	switch (word->kind) {
	case GRAFT_DEVICE_INDEX:
	case GRAFT_DEVICE_MIG_INDEX:
		return gpu->index == word->index;
	case GRAFT_DEVICE_UUID:
		return is_uuid(&gpu->uuid, word->text);
	case GRAFT_DEVICE_PCI:
		return gpu->bus_id && word->bus_id && strcasecmp(gpu->bus_id, word->bus_id) == 0;
	case GRAFT_DEVICE_MIG_UUID:
		return word->uuid && is_uuid(&gpu->uuid, word->uuid);
	case GRAFT_DEVICE_UNKNOWN:
	case GRAFT_DEVICE_ALL:
		break;
	}
	return false;
}

static const struct graft_gpu *find_gpu_by_word(const struct graft_inventory *inventory,
						const struct graft_device_word *word)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (!inventory->gpus[i].excluded && means_gpu(word, &inventory->gpus[i]))
			return &inventory->gpus[i];
	}
	return NULL;
}

/* Returns whether a MIG word refers to this device of this GPU. */
static bool means_mig(const struct graft_device_word *word, const struct graft_gpu *gpu,
		      const struct graft_mig_device *mig)
{
	if (word->kind == GRAFT_DEVICE_MIG_INDEX)
		return means_gpu(word, gpu) && mig->index == word->mig_index;
	return is_uuid(&mig->uuid, word->text) || (means_gpu(word, gpu) && mig->gi == word->gi && mig->ci == word->ci);
}

static bool find_mig_by_word(const struct graft_inventory *inventory, const struct graft_device_word *word,
			     struct graft_selected_mig *ret_mig)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		for (size_t j = 0; !gpu->excluded && j < gpu->n_mig_devices; j++) {
			if (means_mig(word, gpu, &gpu->mig_devices[j])) {
				*ret_mig = (struct graft_selected_mig){ gpu, &gpu->mig_devices[j] };
				return true;
			}
		}
	}
	return false;
}

static bool knows_all_gpu_uuids(const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (!inventory->gpus[i].excluded && !inventory->gpus[i].uuid.value)
			return false;
	}
	return true;
}

/* A GPU in MIG mode without known MIG devices may have some that only NVML shows. */
static bool knows_all_mig_uuids(const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		for (size_t j = 0; !gpu->excluded && j < gpu->n_mig_devices; j++) {
			if (!gpu->mig_devices[j].uuid.value)
				return false;
		}
	}
	return true;
}

unsigned int graft_select_missing_facts(const struct graft_inventory *inventory, const struct graft_request *request)
{
	struct graft_selected_mig mig;
	unsigned int missing = 0;

	if (graft_inventory_count_gpus(inventory) == 0)
		return 0;
	for (size_t i = 0; i < request->n_devices && request->devices[i].kind != GRAFT_DEVICE_ALL; i++) {
		const struct graft_device_word *word = &request->devices[i];
		bool names_gpu = word->kind == GRAFT_DEVICE_UUID || (word->kind == GRAFT_DEVICE_MIG_UUID && word->uuid);
		bool names_mig = word->kind == GRAFT_DEVICE_MIG_UUID;

		if (names_mig ? find_mig_by_word(inventory, word, &mig) : find_gpu_by_word(inventory, word) != NULL)
			continue;
		if (names_gpu && !knows_all_gpu_uuids(inventory))
			missing |= GRAFT_NVML_UUID;
		if (names_mig && !knows_all_mig_uuids(inventory))
			missing |= GRAFT_NVML_MIG;
	}
	return missing;
}

static int select_gpu(struct graft_arena *arena, struct graft_selection *selection, const struct graft_gpu *gpu)
{
	const struct graft_gpu **slot;

	for (size_t i = 0; i < selection->n_gpus; i++) {
		if (selection->gpus[i] == gpu)
			return 0;
	}
	slot = graft_arena_push(arena, &selection->gpus, &selection->n_gpus, sizeof(*slot));
	if (!slot)
		return -1;
	*slot = gpu;
	return 0;
}

/* A MIG device's GPU is selected with it (SPEC libnvidia-container 7.2). */
static int select_mig(struct graft_arena *arena, struct graft_selection *selection,
		      const struct graft_selected_mig *mig)
{
	struct graft_selected_mig *slot;

	for (size_t i = 0; i < selection->n_migs; i++) {
		if (selection->migs[i].mig == mig->mig)
			return 0;
	}
	slot = graft_arena_push(arena, &selection->migs, &selection->n_migs, sizeof(*slot));
	if (!slot)
		return -1;
	*slot = *mig;
	return select_gpu(arena, selection, mig->gpu);
}

/*
 * SPEC runtime-and-hook 7.4: "all" excludes a DGX Station's card for its own display, and a GPU
 * that is in MIG mode but has no MIG devices.
 */
static bool is_usable(const struct graft_gpu *gpu)
{
	static const char *const displays[] = { "DGX Display", "NVIDIA DGX Display" };

	if (gpu->model.value && graft_is_in(displays, GRAFT_COUNT(displays), gpu->model.value))
		return false;
	return !gpu->mig_enabled || gpu->n_mig_devices > 0;
}

static int select_all_gpus(const struct graft_inventory *inventory, bool all_usable, struct graft_arena *arena,
			   struct graft_selection *selection)
{
	selection->all = true;
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		if (gpu->excluded || (all_usable && !is_usable(gpu)))
			continue;
		if (select_gpu(arena, selection, gpu) < 0)
			return -1;
		for (size_t j = 0; j < gpu->n_mig_devices; j++) {
			const struct graft_selected_mig mig = { gpu, &gpu->mig_devices[j] };

			if (select_mig(arena, selection, &mig) < 0)
				return -1;
		}
	}
	return 0;
}

/* A claim that is still among the words was not taken (docs/leases.md). */
static int fail_unknown_device(const char *word, struct graft_error *err)
{
	(void)graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "%s: unknown device", word);
	if (!graft_claim_is_in(&(struct graft_strings){ .items = &word, .n = 1 }))
		return -1;
	return graft_with_hint(err,
			       "It is a claim, which counts where leases are on: 'nvidia-ctk config --in-place --set "
			       "graft.leases.mode=on'.");
}

static int select_by_word(const struct graft_inventory *inventory, const struct graft_device_word *word,
			  bool all_usable, struct graft_arena *arena, struct graft_selection *selection,
			  struct graft_error *err)
{
	const struct graft_gpu *gpu = NULL;
	struct graft_selected_mig mig;
	int result = 0;

	switch (word->kind) {
	case GRAFT_DEVICE_ALL:
		result = select_all_gpus(inventory, all_usable, arena, selection);
		break;
	case GRAFT_DEVICE_MIG_UUID:
	case GRAFT_DEVICE_MIG_INDEX:
		if (!find_mig_by_word(inventory, word, &mig))
			return fail_unknown_device(word->text, err);
		result = select_mig(arena, selection, &mig);
		break;
	case GRAFT_DEVICE_INDEX:
	case GRAFT_DEVICE_UUID:
	case GRAFT_DEVICE_PCI:
		gpu = find_gpu_by_word(inventory, word);
		__attribute__((fallthrough));
	case GRAFT_DEVICE_UNKNOWN:
		if (!gpu)
			return fail_unknown_device(word->text, err);
		result = select_gpu(arena, selection, gpu);
		break;
	}
	return result < 0 ? graft_fail_memory(err) : 0;
}

/* Selects those of the selected GPUs that support MIG. */
static int select_mig_capable(const struct graft_selection *selection, struct graft_arena *arena, const char *option,
			      const struct graft_gpu ***ret_gpus, size_t *ret_n, struct graft_error *err)
{
	if (selection->n_migs > 0 && !selection->all)
		return graft_fail(err, GRAFT_INVALID, 0, "all: cannot enable %s with specific MIG devices selected",
				  option);
	for (size_t i = 0; i < selection->n_gpus; i++) {
		const struct graft_gpu **slot;

		if (!selection->gpus[i]->mig_capable)
			continue;
		slot = graft_arena_push(arena, ret_gpus, ret_n, sizeof(*slot));
		if (!slot)
			return graft_fail_memory(err);
		*slot = selection->gpus[i];
	}
	return 0;
}

/*
 * Whether a word means the GPU of a Tegra board, whose driver lists none. On other hosts without
 * GPUs, no word is checked (SPEC libnvidia-container 3.5).
 */
static bool is_only_gpu(const struct graft_inventory *inventory, const struct graft_device_word *word)
{
	return inventory->platform != GRAFT_PLATFORM_TEGRA || word->kind == GRAFT_DEVICE_ALL ||
	       (word->kind == GRAFT_DEVICE_INDEX && word->index == 0);
}

static int select_devices(const struct graft_inventory *inventory, const struct graft_request *request,
			  struct graft_arena *arena, struct graft_selection *selection, struct graft_error *err)
{
	bool has_gpus = graft_inventory_count_gpus(inventory) > 0;

	for (size_t i = 0; i < request->n_devices && !selection->all; i++) {
		if (!has_gpus && !is_only_gpu(inventory, &request->devices[i]))
			return fail_unknown_device(request->devices[i].text, err);
		if (!has_gpus)
			selection->all = request->devices[i].kind == GRAFT_DEVICE_ALL;
		else if (select_by_word(inventory, &request->devices[i], request->all_usable, arena, selection, err) <
			 0)
			return -1;
	}
	return 0;
}

int graft_select(const struct graft_inventory *inventory, const struct graft_request *request,
		 struct graft_arena *arena, struct graft_selection *ret_selection, struct graft_error *err)
{
	struct graft_selection selection = { 0 };

	if (select_devices(inventory, request, arena, &selection, err) < 0)
		return graft_in_step(err, GRAFT_STEP_DEVICE);
	if (request->mig_config && select_mig_capable(&selection, arena, "mig-config", &selection.mig_config_gpus,
						      &selection.n_mig_config_gpus, err) < 0)
		return graft_in_step(err, GRAFT_STEP_MIG_CONFIG);
	if (request->mig_monitor && select_mig_capable(&selection, arena, "mig-monitor", &selection.mig_monitor_gpus,
						       &selection.n_mig_monitor_gpus, err) < 0)
		return graft_in_step(err, GRAFT_STEP_MIG_MONITOR);
	*ret_selection = selection;
	return 0;
}
