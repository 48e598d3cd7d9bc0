/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_devices: resolves ids to devices by the selection that all programs share (plan/select.h),
 * and devices to names by strategy.
 */
#include "plan/cdi_devices.h"

#include <string.h>

#include "base/cleanup.h"
#include "formats/cdi/cdi.h"
#include "host/discover.h"
#include "request/request.h"

const char *const graft_cdi_naming_words[GRAFT_CDI_NAMINGS] = {
#define X(name, word, help) [GRAFT_CDI_NAMING_BIT_##name] = word,
	GRAFT_CDI_NAMING_LIST(X)
#undef X
};

/* --- names --- */

static const char *name_by(enum graft_cdi_naming_bit naming, const struct graft_gpu *gpu,
			   const struct graft_mig_device *mig, struct graft_arena *arena)
{
	const char *type = naming == GRAFT_CDI_NAMING_BIT_TYPE_INDEX ? (mig ? "mig" : "gpu") : "";

	if (naming == GRAFT_CDI_NAMING_BIT_UUID)
		return mig ? mig->uuid.value : gpu->uuid.value;
	return mig ? graft_arena_printf(arena, "%s%u:%u", type, gpu->index, mig->index)
		   : graft_arena_printf(arena, "%s%u", type, gpu->index);
}

int graft_cdi_name(const struct graft_gpu *gpu, const struct graft_mig_device *mig, unsigned int namings,
		   struct graft_arena *arena, struct graft_cdi_choice *choice, struct graft_error *err)
{
	for (unsigned int i = 0; i < GRAFT_CDI_NAMINGS; i++) {
		const char *name = (namings & 1u << i) != 0 ? name_by((enum graft_cdi_naming_bit)i, gpu, mig, arena)
							    : NULL;

		/* QUIRK: before driver 470, UUIDs of MIG devices contained slashes. */
		if (!name || graft_cdi_check_device(name, NULL) < 0)
			continue;
		if (!graft_arena_push_string(arena, &choice->names, &choice->n_names, name))
			return graft_fail_memory(err);
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* --- devices --- */

struct choosing {
	const struct graft_inventory *inventory;
	unsigned int namings;
	struct graft_arena *arena;
	struct graft_cdi_choices choices;
	struct graft_error *err;
};

static bool is_device_chosen(const struct choosing *choosing, const struct graft_gpu *gpu,
			     const struct graft_mig_device *mig)
{
	for (size_t i = 0; i < choosing->choices.n; i++) {
		const struct graft_selection *selection = &choosing->choices.items[i].selection;

		if (mig ? selection->n_migs > 0 && selection->migs[0].mig == mig
			: selection->n_migs == 0 && selection->n_gpus > 0 && selection->gpus[0] == gpu)
			return true;
	}
	return false;
}

/* Returns a new choice, or NULL if memory is exhausted. */
static struct graft_cdi_choice *push_cdi_choice(struct choosing *choosing)
{
	return graft_arena_push(choosing->arena, &choosing->choices.items, &choosing->choices.n,
				sizeof(struct graft_cdi_choice));
}

static int add_device_choice(struct choosing *choosing, const struct graft_gpu *gpu, const struct graft_mig_device *mig)
{
	const struct graft_selected_mig selected = { gpu, mig };
	struct graft_cdi_choice *choice;

	if (is_device_chosen(choosing, gpu, mig))
		return 0;
	choice = push_cdi_choice(choosing);
	if (!choice)
		return graft_fail_memory(choosing->err);
	choice->selection.gpus = graft_arena_memdup(choosing->arena, &gpu, sizeof(gpu));
	choice->selection.n_gpus = 1;
	if (mig) {
		choice->selection.migs = graft_arena_memdup(choosing->arena, &selected, sizeof(selected));
		choice->selection.n_migs = 1;
	}
	return graft_cdi_name(gpu, mig, choosing->namings, choosing->arena, choice, choosing->err);
}

/*
 * Adds the devices of a selection. A MIG device's GPU is part of the selection, but not a separate
 * device.
 */
static int add_selection(struct choosing *choosing, const struct graft_selection *selection)
{
	for (size_t i = 0; i < selection->n_gpus; i++) {
		bool split = false;

		for (size_t j = 0; j < selection->n_migs; j++)
			split = split || selection->migs[j].gpu == selection->gpus[i];
		if (!split && add_device_choice(choosing, selection->gpus[i], NULL) < 0)
			return -1;
	}
	for (size_t i = 0; i < selection->n_migs; i++) {
		if (add_device_choice(choosing, selection->migs[i].gpu, selection->migs[i].mig) < 0)
			return -1;
	}
	return 0;
}

/*
 * Fails with the error that NVML would give, which scripts recognise (SPEC ctk-and-cdi 4.6, 6.10).
 */
static int fail_unknown_id(const struct graft_device_word *word, struct graft_error *err)
{
	const char *by = "index", *code = "ERROR_INVALID_ARGUMENT";

	if (word->kind == GRAFT_DEVICE_UUID || word->kind == GRAFT_DEVICE_MIG_UUID) {
		by = "UUID";
		code = "ERROR_NOT_FOUND";
	} else if (word->kind == GRAFT_DEVICE_PCI) {
		by = "PCI address";
		code = "ERROR_NOT_FOUND";
	} else if (word->kind == GRAFT_DEVICE_MIG_INDEX) {
		by = "MIG index";
		code = "ERROR_NOT_FOUND";
	}
	return graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "failed to get device handle from %s: %s: no device '%s'", by,
			  code, word->text);
}

static int add_request(struct choosing *choosing, const struct graft_request *request)
{
	const struct graft_device_word *word = &request->devices[0];
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_selection selection = { .n_gpus = 0 };
	int rc = graft_select(choosing->inventory, request, choosing->arena, &selection, &why);

	/* On a host without GPUs, graft_select() accepts any word; here it is an unknown device. */
	if (rc < 0 ? why.status == GRAFT_UNKNOWN_DEVICE : selection.n_gpus == 0 && word->kind != GRAFT_DEVICE_ALL)
		return fail_unknown_id(word, choosing->err);
	if (rc == 0)
		return add_selection(choosing, &selection);
	*choosing->err = why;
	return -1;
}

static int add_none(struct choosing *choosing)
{
	struct graft_cdi_choice *choice = push_cdi_choice(choosing);

	if (!choice || !graft_arena_push_string(choosing->arena, &choice->names, &choice->n_names, "none"))
		return graft_fail_memory(choosing->err);
	return 0;
}

/* Returns a request for one id. NULL: memory is exhausted, or the id has no known form. */
static struct graft_request *parse_device_id(const char *id, struct graft_error *err)
{
	struct graft_request *request = graft_request_new();

	if (!request) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	request->all_usable = true;
	if (graft_request_devices(request, id, err) == 0) {
		if (request->n_devices == 1 && request->devices[0].kind != GRAFT_DEVICE_UNKNOWN)
			return request;
		(void)graft_fail(err, GRAFT_INVALID, 0, "identifier is not a valid UUID or index: \"%s\"", id);
	}
	return graft_request_free(request);
}

static int add_id(struct choosing *choosing, const char *id)
{
	struct graft_request *request = parse_device_id(id, choosing->err);
	int rc = request ? add_request(choosing, request) : -1;

	(void)graft_request_free(request);
	return rc;
}

/* SPEC ctk-and-cdi 4.6: the first "all" or "none" decides, wherever it is. */
static const char *find_special_id(const char *const *ids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(ids[i], "all") == 0 || strcmp(ids[i], "none") == 0)
			return ids[i];
	}
	return NULL;
}

int graft_cdi_choose(const struct graft_inventory *inventory, const char *const *ids, size_t n_ids,
		     unsigned int namings, struct graft_arena *arena, struct graft_cdi_choices *ret_choices,
		     struct graft_error *err)
{
	struct choosing choosing = { .inventory = inventory, .namings = namings, .arena = arena, .err = err };
	const char *special = find_special_id(ids, n_ids);
	int rc = 0;

	if (special && strcmp(special, "none") == 0)
		rc = add_none(&choosing);
	else if (special)
		rc = add_id(&choosing, special);
	for (size_t i = 0; i < n_ids && !special && rc == 0; i++)
		rc = add_id(&choosing, ids[i]);
	if (rc == 0)
		*ret_choices = choosing.choices;
	return rc;
}

/* --- what only NVML knows --- */

static unsigned int unnamed(const struct graft_cdi_choices *choices)
{
	unsigned int facts = 0;

	for (size_t i = 0; i < choices->n; i++) {
		const struct graft_selection *selection = &choices->items[i].selection;

		if (selection->n_migs > 0)
			facts |= selection->migs[0].mig->uuid.value ? 0u : (unsigned int)GRAFT_NVML_MIG;
		else if (selection->n_gpus > 0)
			facts |= selection->gpus[0]->uuid.value ? 0u : (unsigned int)GRAFT_NVML_UUID;
	}
	return facts;
}

int graft_cdi_missing_facts(const struct graft_inventory *inventory, const char *const *ids, size_t n_ids,
			    unsigned int namings, struct graft_arena *arena, unsigned int *ret_facts,
			    struct graft_error *err)
{
	const char *special = find_special_id(ids, n_ids);
	struct graft_cdi_choices choices = { .n = 0 };

	*ret_facts = 0;
	if (special && strcmp(special, "none") == 0)
		return 0;
	/* "all" needs no facts. */
	for (size_t i = 0; i < n_ids && !special; i++) {
		struct graft_request *request = parse_device_id(ids[i], err);

		if (!request)
			return -1;
		*ret_facts |= graft_select_missing_facts(inventory, request);
		(void)graft_request_free(request);
	}
	if (*ret_facts == 0 && (namings & GRAFT_CDI_NAMING_UUID) != 0) {
		if (graft_cdi_choose(inventory, ids, n_ids, namings, arena, &choices, err) < 0)
			return -1;
		*ret_facts = unnamed(&choices);
	}
	return 0;
}
