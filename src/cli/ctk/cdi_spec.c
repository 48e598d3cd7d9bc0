/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_spec: a mode is a list of devices, each with a plan, and the plan of what they have in common. The sink makes edits of plans; here they get names. */
#include "cli/ctk/cdi_spec.h"

#include <string.h>

#include "apply/to_cdi.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "formats/cdi_simplify.h"
#include "plan/cdi_devices.h"
#include "plan/csv.h"
#include "plan/planner.h"

#define ALL        "all"
#define LINKS_HOOK "create-symlinks"

const struct ctk_cdi_mode_row ctk_cdi_modes[CTK_CDI_MODES] = {
#define X(name, word, vendor, class_, help) [CTK_CDI_##name] = { word, vendor, class_ },
	CTK_CDI_MODE_LIST(X)
#undef X
};

/* What specifications are split by (SPEC 1.5, feature flag enable-coherent-annotations). */
enum coherence { UNKNOWN, COHERENT, NONCOHERENT };

struct making {
	const struct ctk_cdi_wish *wish;
	const struct ctk_cdi_host *host;
	struct graft_arena *arena;
	struct ctk_cdi_specs *specs;
	struct graft_error *err;
	struct graft_cdi_options options;
	const struct graft_plan *common;
	struct graft_cdi_edits common_edits;
	struct graft_cdi_device *devices;
	size_t n_devices;
	enum coherence *coherence; /* of each device */
	size_t n_coherence;
};

/* --- requests --- */

static const struct {
	enum ctk_cdi_mode mode;
	enum graft_gate gate;
} gates[] = {
	{ CTK_CDI_GDS, GRAFT_GATE_GDS },
	{ CTK_CDI_MOFED, GRAFT_GATE_MOFED },
	{ CTK_CDI_GDRCOPY, GRAFT_GATE_GDRCOPY },
	{ CTK_CDI_NVSWITCH, GRAFT_GATE_NVSWITCH },
};

static int request_channels(const struct ctk_cdi_wish *wish, struct graft_request *request, struct graft_error *err)
{
	for (size_t i = 0; i < wish->n_ids; i++) {
		if (graft_request_imex_word(request, wish->ids[i], err) < 0)
			return -1;
	}
	return 0;
}

struct graft_request *ctk_cdi_request(const struct ctk_cdi_wish *wish, struct graft_error *err)
{
	struct graft_request *request = graft_request_new();

	if (!request) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	request->capabilities = wish->capabilities;
	request->explicit_driver_libraries = wish->explicit_libraries;
	request->no_persistenced = request->no_fabricmanager = request->no_mps = wish->no_daemons;
	request->all_usable = true;
	request->management = wish->mode == CTK_CDI_MANAGEMENT;
	for (size_t i = 0; i < GRAFT_COUNT(gates); i++) {
		if (wish->mode == gates[i].mode)
			request->gates = 1u << gates[i].gate;
	}
	if (wish->mode == CTK_CDI_IMEX && request_channels(wish, request, err) < 0)
		return graft_request_free(request);
	return request;
}

/* --- plans --- */

/* Specifications point into plans, which live as long as they do. */
static int keep_plan(struct making *making, struct graft_plan *take_plan)
{
	struct ctk_cdi_specs *specs = making->specs;
	struct graft_plan **slot = graft_arena_push(making->arena, &specs->plans, &specs->n_plans, sizeof(*slot));

	if (!slot) {
		(void)graft_plan_free(take_plan);
		return graft_fail_memory(making->err);
	}
	*slot = take_plan;
	return 0;
}

/*
 * The host without what no choice of a device changes: it is in the plan of all devices, would be left out of each one's again, and is nearly all of the work where there
 * are many.
 */
static struct graft_inventory without_files(const struct graft_inventory *inventory)
{
	struct graft_inventory rest = *inventory;

	rest.n_libraries = rest.n_libraries32 = rest.n_binaries = 0;
	rest.n_extra_files = rest.n_firmwares = rest.n_ipcs = 0;
	return rest;
}

static int plan(struct making *making, const struct graft_request *request, const struct graft_selection *selection,
		bool shared, struct graft_plan **ret_plan)
{
	const struct graft_inventory *inventory = making->host->inventory, rest = without_files(inventory);
	const struct graft_policy policy = { .style = GRAFT_STYLE_OCI,
					     .disabled_hooks = making->wish->disabled_hooks,
					     .shared = shared };

	if (graft_plan_make(shared ? inventory : &rest, request, &policy, selection, ret_plan, making->err) < 0)
		return -1;
	return keep_plan(making, *ret_plan);
}

/* What a mode does without, by rule; a mode that is not about GPUs has nothing but its own nodes. */
static bool is_wanted(const struct making *making, const struct graft_edit *edit, bool shared)
{
	switch (making->wish->mode) {
	case CTK_CDI_NVML:
	case CTK_CDI_WSL:
	case CTK_CDI_CSV:
		return true;
	case CTK_CDI_MANAGEMENT: /* SPEC 4.8: nothing that is seen on a display */
		return strcmp(edit->rule, "extra-file") != 0 && strcmp(edit->rule, "application-profile") != 0;
	case CTK_CDI_GDS:
	case CTK_CDI_MOFED:
	case CTK_CDI_GDRCOPY:
	case CTK_CDI_NVSWITCH:
	case CTK_CDI_IMEX:
		if (!shared)
			return strncmp(edit->rule, "gate-", strlen("gate-")) == 0 ||
			       strcmp(edit->rule, "imex-channel") == 0;
		/* SPEC 4.4 (8): in all modes. */
		return edit->kind == GRAFT_EDIT_ENV && strcmp(edit->target, "NVIDIA_VISIBLE_DEVICES") == 0;
	case CTK_CDI_MODES:
		break;
	}
	return false;
}

static void cut(const struct making *making, struct graft_plan *made, bool shared)
{
	size_t n = 0;

	for (size_t i = 0; i < made->n_edits; i++) {
		if (is_wanted(making, &made->edits[i], shared))
			made->edits[n++] = made->edits[i];
	}
	made->n_edits = n;
}

/* The first plan: what all devices have in common. */
static int set_common(struct making *making, struct graft_plan *made)
{
	cut(making, made, true);
	making->common = made;
	return graft_plan_to_cdi(made, NULL, &making->options, making->arena, &making->common_edits, making->err);
}

static int plan_common(struct making *making)
{
	const struct graft_selection none = { .n_gpus = 0 };
	struct ctk_cdi_wish wish = *making->wish;
	struct graft_request *request;
	struct graft_plan *made = NULL;
	int rc;

	wish.n_ids = 0; /* channels are devices */
	request = ctk_cdi_request(&wish, making->err);
	rc = request ? plan(making, request, &none, true, &made) : -1;
	(void)graft_request_free(request);
	return rc < 0 ? -1 : set_common(making, made);
}

/* --- devices --- */

/* One device by each of its names. */
static int add_device(struct making *making, struct graft_plan *made, const char *const *names, size_t n_names,
		      enum coherence coherence)
{
	struct graft_cdi_edits edits;

	cut(making, made, false);
	if (graft_plan_to_cdi(made, making->common, &making->options, making->arena, &edits, making->err) < 0)
		return -1;
	for (size_t i = 0; i < n_names; i++) {
		struct graft_cdi_device *device = graft_arena_push(making->arena, &making->devices, &making->n_devices,
								   sizeof(*device));
		enum coherence *slot = graft_arena_push(making->arena, &making->coherence, &making->n_coherence,
							sizeof(*slot));

		if (!device || !slot)
			return graft_fail_memory(making->err);
		*device = (struct graft_cdi_device){ .name = names[i], .edits = edits };
		*slot = coherence;
	}
	return 0;
}

/* SPEC 4.6: of whole GPUs only. */
static enum coherence coherence_of(const struct making *making, const struct graft_selection *selection)
{
	const char *addressing = selection->n_gpus > 0 ? selection->gpus[0]->addressing.value : NULL;

	if (!making->wish->coherent || selection->n_migs > 0 || !addressing)
		return UNKNOWN;
	return strcmp(addressing, "ats") == 0 ? COHERENT : NONCOHERENT;
}

static void warn(struct making *making, const char *text)
{
	if (text)
		(void)graft_arena_push_string(making->arena, &making->specs->warnings, &making->specs->n_warnings,
					      text);
}

static int add_choice(struct making *making, const struct graft_request *request, const struct graft_cdi_choice *choice)
{
	struct graft_plan *made;

	if (choice->n_names == 0) {
		warn(making, "a device has no name by the strategies that were asked for, and is left out");
		return 0;
	}
	if (plan(making, request, &choice->selection, false, &made) < 0)
		return -1;
	return add_device(making, made, choice->names, choice->n_names, coherence_of(making, &choice->selection));
}

static int add_gpus(struct making *making)
{
	const struct ctk_cdi_wish *wish = making->wish;
	struct graft_request *request = ctk_cdi_request(wish, making->err);
	struct graft_cdi_choices choices;
	int rc = request ? 0 : -1;

	if (rc == 0 && graft_cdi_choose(making->host->inventory, wish->ids, wish->n_ids, wish->namings, making->arena,
					&choices, making->err) < 0)
		rc = graft_wrap(making->err, "failed to construct device spec generators");
	for (size_t i = 0; rc == 0 && i < choices.n; i++)
		rc = add_choice(making, request, &choices.items[i]);
	(void)graft_request_free(request);
	return rc;
}

/* Modes whose only device is all that there is. */
static int add_all(struct making *making)
{
	static const char *const names[] = { ALL };
	const struct graft_selection none = { .n_gpus = 0 };
	struct graft_request *request = ctk_cdi_request(making->wish, making->err);
	struct graft_plan *made = NULL;
	int rc = request ? 0 : -1;

	/* On other platforms it would be their GPUs. */
	if (rc == 0 && making->wish->mode == CTK_CDI_WSL && making->host->inventory->platform == GRAFT_PLATFORM_WSL2)
		rc = graft_request_devices(request, ALL, making->err);
	if (rc == 0)
		rc = plan(making, request, &none, false, &made);
	if (rc == 0)
		rc = add_device(making, made, names, 1, UNKNOWN);
	(void)graft_request_free(request);
	/* Without anything of its own it is none. */
	if (rc == 0 && making->devices[0].edits.n_nodes == 0)
		making->n_devices = making->n_coherence = 0;
	return rc;
}

static int add_channel(struct making *making, uint32_t channel)
{
	const char *name = graft_arena_printf(making->arena, "%u", channel);
	struct ctk_cdi_wish wish = *making->wish;
	struct graft_selection none = { .n_gpus = 0 };
	struct graft_request *request;
	struct graft_plan *made = NULL;
	int rc;

	if (!name)
		return graft_fail_memory(making->err);
	wish.ids = &name;
	wish.n_ids = 1;
	request = ctk_cdi_request(&wish, making->err);
	rc = request ? plan(making, request, &none, false, &made) : -1;
	(void)graft_request_free(request);
	return rc < 0 ? -1 : add_device(making, made, &name, 1, UNKNOWN);
}

static int add_channels(struct making *making)
{
	const struct graft_inventory *inventory = making->host->inventory;
	struct graft_request *request = ctk_cdi_request(making->wish, making->err);
	int rc = request ? 0 : -1;

	for (size_t i = 0; rc == 0 && !request->all_imex_channels && i < request->n_imex_channels; i++)
		rc = add_channel(making, request->imex_channels[i].id);
	for (size_t i = 0; rc == 0 && request->all_imex_channels && i < inventory->n_imex; i++) {
		if (inventory->imex[i].node.present)
			rc = add_channel(making, inventory->imex[i].channel);
	}
	(void)graft_request_free(request);
	return rc;
}

/* --- csv --- */

static int plan_csv(struct making *making, const struct graft_csv_selection *selection, struct graft_plan **ret_plan)
{
	const struct graft_csv_policy policy = { .disabled_hooks = making->wish->disabled_hooks };

	if (graft_csv_plan(making->host->csv, selection, &policy, ret_plan, making->err) < 0)
		return -1;
	return keep_plan(making, *ret_plan);
}

/* What the driver does not say of a board's only GPU is what its place says. */
static int name_board_gpu(struct making *making, const struct graft_csv_selection *selection,
			  struct graft_cdi_choice *choice)
{
	const struct graft_gpu unknown = { .index = 0 };
	const struct graft_gpu *gpu = selection->integrated ? selection->integrated_gpu : selection->discrete_gpu;

	return graft_cdi_name(gpu ? gpu : &unknown, NULL, making->wish->namings, making->arena, choice, making->err);
}

static int add_board_gpu(struct making *making, const char *word)
{
	struct graft_cdi_choice choice = { .n_names = 0 };
	struct graft_csv_selection selection;
	struct graft_plan *made;
	const char *fallback;

	if (graft_csv_select(making->host->inventory, making->wish->single_csv_device, &word, 1, &selection, &fallback,
			     making->err) < 0 ||
	    name_board_gpu(making, &selection, &choice) < 0)
		return -1;
	for (size_t i = 0; i < making->n_devices; i++) {
		if (choice.n_names > 0 && strcmp(making->devices[i].name, choice.names[0]) == 0)
			return 0;
	}
	if (plan_csv(making, &selection, &made) < 0)
		return -1;
	return add_device(making, made, choice.names, choice.n_names, UNKNOWN);
}

/* SPEC 4.10: "all" is each of the board's GPUs. */
static int add_board(struct making *making)
{
	static const char *const first[] = { "0", "1" };
	const struct ctk_cdi_wish *wish = making->wish;
	const char *const *words = wish->ids;
	struct graft_csv_selection both;
	const char *fallback, *all = ALL;
	size_t n = wish->n_ids;

	if (graft_csv_select(making->host->inventory, wish->single_csv_device, &all, 1, &both, &fallback, making->err) <
	    0)
		return -1;
	warn(making, fallback);
	for (size_t i = 0; i < wish->n_ids; i++) {
		if (strcmp(wish->ids[i], ALL) == 0) {
			words = first;
			n = both.single ? 1 : 2;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (add_board_gpu(making, words[i]) < 0)
			return -1;
	}
	return 0;
}

static int plan_board(struct making *making)
{
	const struct graft_csv_selection none = { .single = true };
	struct graft_plan *made;

	return plan_csv(making, &none, &made) < 0 ? -1 : set_common(making, made);
}

/* --- the image that nobody knows --- */

static void set_options(struct making *making)
{
	const struct ctk_cdi_wish *wish = making->wish;
	const struct graft_csv_facts *facts = making->host->csv_facts;

	making->options = (struct graft_cdi_options){ .hook_path = wish->hook_path,
						      .ldconfig_path = wish->ldconfig_path,
						      .chmod = wish->chmod,
						      .no_hooks = wish->no_hooks,
						      .no_additional_gids = wish->no_additional_gids };
	if ((wish->disabled_hooks & GRAFT_HOOK_COMPAT) != 0)
		return;
	if (wish->mode == CTK_CDI_NVML || wish->mode == CTK_CDI_MANAGEMENT)
		making->options.compat.driver_version = making->host->inventory->driver_version.value;
	if (wish->mode == CTK_CDI_CSV && facts && facts->from_nvml) {
		making->options.compat.cuda_version = facts->cuda;
		making->options.compat.directory = facts->orin ? wish->csv_compat_directory : NULL;
	}
}

/* --- specifications --- */

/* With those devices that are of one kind; UNKNOWN: with all. */
static int add_spec(struct making *making, enum coherence coherence, const char *infix)
{
	const struct ctk_cdi_wish *wish = making->wish;
	struct ctk_cdi_item *item = &making->specs->items[making->specs->n];

	*item = (struct ctk_cdi_item){ .infix = infix,
				       .spec = {
					   .vendor = wish->vendor,
					   .class_ = graft_arena_printf(making->arena, "%s%s", wish->class_, infix),
					   .edits = making->common_edits } };
	for (size_t i = 0; i < making->n_devices; i++) {
		struct graft_cdi_device *device;

		if (coherence != UNKNOWN && making->coherence[i] != coherence)
			continue;
		device = graft_arena_push(making->arena, &item->spec.devices, &item->spec.n_devices, sizeof(*device));
		if (!device)
			return graft_fail_memory(making->err);
		*device = making->devices[i];
	}
	if (!item->spec.class_)
		return graft_fail_memory(making->err);
	making->specs->n += item->spec.n_devices > 0;
	return 0;
}

/* Says which driver and GPUs it is for. The other modes describe nothing that changes with GPUs. */
static int add_provenance(struct making *making, struct ctk_cdi_item *item)
{
	bool gpus = making->wish->mode == CTK_CDI_NVML || making->wish->mode == CTK_CDI_MANAGEMENT;
	struct graft_cdi_fingerprint fingerprint = { .boot_id = making->host->boot_id };
	int rc = 0;

	if (making->host->inventory)
		rc = graft_cdi_fingerprint_make(making->host->inventory, gpus, making->host->boot_id, making->arena,
						&fingerprint, making->err);
	fingerprint.flags = making->wish->flags;
	if (rc == 0)
		rc = graft_cdi_fingerprint_store(&fingerprint, making->wish->provenance, making->arena, &item->spec,
						 making->err);
	item->has_provenance = rc > 0;
	return rc < 0 ? -1 : 0;
}

/* Words of a hook before its links; 0: it makes none. */
static size_t words_before_links(const struct graft_cdi_hook *hook)
{
	for (size_t i = 1; i < hook->n_args && i < 3; i++) {
		if (strcmp(hook->args[i], LINKS_HOOK) == 0)
			return i + 1;
	}
	return 0;
}

static bool has_argument(const struct graft_cdi_hook *hook, const char *argument)
{
	for (size_t i = 0; i < hook->n_args; i++) {
		if (strcmp(hook->args[i], argument) == 0)
			return true;
	}
	return false;
}

/* "--link LINK" by pairs; a device that has two names has its links twice. */
static int add_links(struct graft_cdi_hook *links, const struct graft_cdi_hook *hook, size_t from,
		     struct graft_arena *arena)
{
	for (size_t i = from; i + 1 < hook->n_args; i += 2) {
		if (has_argument(links, hook->args[i + 1]))
			continue;
		if (!graft_arena_push_string(arena, &links->args, &links->n_args, hook->args[i]) ||
		    !graft_arena_push_string(arena, &links->args, &links->n_args, hook->args[i + 1]))
			return -1;
	}
	return 0;
}

/* One program makes the links of all GPUs as well as one for each. The lists are shared with the devices that they are from: they are made anew. */
static int join_links(struct graft_cdi_edits *edits, struct graft_arena *arena)
{
	struct graft_cdi_hook *hooks = graft_arena_list(arena, edits->n_hooks, sizeof(*hooks)), *links = NULL;
	size_t n = 0;

	if (!hooks && edits->n_hooks > 0)
		return -1;
	for (size_t i = 0; i < edits->n_hooks; i++) {
		const struct graft_cdi_hook *hook = &edits->hooks[i];
		size_t from = links ? words_before_links(hook) : 0;

		if (from == 0) {
			hooks[n] = *hook;
			hooks[n].args = graft_arena_list(arena, hook->n_args, sizeof(*hook->args));
			if (!hooks[n].args)
				return -1;
			memcpy(hooks[n].args, hook->args, hook->n_args * sizeof(*hook->args));
			if (words_before_links(hook) > 0)
				links = &hooks[n];
			n++;
			continue;
		}
		if (add_links(links, hook, from, arena) < 0)
			return -1;
	}
	edits->hooks = hooks;
	edits->n_hooks = n;
	return 0;
}

static int add_all_device(struct making *making, struct graft_cdi_spec *spec)
{
	size_t n = spec->n_devices;

	if (graft_cdi_add_merged(spec, ALL, making->arena, making->err) < 0)
		return -1;
	if (spec->n_devices > n && join_links(&spec->devices[n].edits, making->arena) < 0)
		return graft_fail_memory(making->err);
	return 0;
}

static int finish(struct making *making, struct ctk_cdi_item *item)
{
	if (!making->wish->no_all_device && add_all_device(making, &item->spec) < 0)
		return -1;
	if (graft_cdi_simplify(&item->spec, making->arena, making->err) < 0)
		return -1;
	return add_provenance(making, item);
}

static int fail_empty(const struct making *making)
{
	static const char *const noun[CTK_CDI_MODES] = {
		[CTK_CDI_CSV] = "GPU with a name by the strategies that were asked for",
		[CTK_CDI_GDRCOPY] = "/dev/gdrdrv",
		[CTK_CDI_GDS] = "/dev/nvidia-fs*",
		[CTK_CDI_IMEX] = "/dev/nvidia-caps-imex-channels/channel*",
		[CTK_CDI_MANAGEMENT] = "NVIDIA device node",
		[CTK_CDI_MOFED] = "/dev/infiniband/uverbs* or rdma_cm",
		[CTK_CDI_NVML] = "GPU that programs can run on",
		[CTK_CDI_NVSWITCH] = "/dev/nvidia-nvswitch*",
		[CTK_CDI_WSL] = "/dev/dxg",
	};

	return graft_fail(making->err, GRAFT_NOT_FOUND, 0, "no devices: this host has no %s (mode %s)",
			  noun[making->wish->mode], ctk_cdi_modes[making->wish->mode].word);
}

static int add_devices(struct making *making)
{
	switch (making->wish->mode) {
	case CTK_CDI_NVML:
		return add_gpus(making);
	case CTK_CDI_CSV:
		return add_board(making);
	case CTK_CDI_IMEX:
		return add_channels(making);
	case CTK_CDI_WSL:
	case CTK_CDI_MANAGEMENT:
	case CTK_CDI_GDS:
	case CTK_CDI_MOFED:
	case CTK_CDI_GDRCOPY:
	case CTK_CDI_NVSWITCH:
		return add_all(making);
	case CTK_CDI_MODES:
		break;
	}
	return -1;
}

static bool has_coherence(const struct making *making)
{
	for (size_t i = 0; i < making->n_coherence; i++) {
		if (making->coherence[i] != UNKNOWN)
			return true;
	}
	return false;
}

static int make_specs(struct making *making)
{
	if (add_spec(making, UNKNOWN, "") < 0)
		return -1;
	if (has_coherence(making) &&
	    (add_spec(making, COHERENT, ".coherent") < 0 || add_spec(making, NONCOHERENT, ".noncoherent") < 0))
		return -1;
	for (size_t i = 0; i < making->specs->n; i++) {
		if (finish(making, &making->specs->items[i]) < 0)
			return -1;
	}
	return graft_arena_failed(making->arena) ? graft_fail_memory(making->err) : 0;
}

int ctk_cdi_make(const struct ctk_cdi_wish *wish, const struct ctk_cdi_host *host, struct graft_arena *arena,
		 struct ctk_cdi_specs *ret_specs, struct graft_error *err)
{
	struct making making = { .wish = wish, .host = host, .arena = arena, .specs = ret_specs, .err = err };
	int rc;

	*ret_specs = (struct ctk_cdi_specs){ .n = 0 };
	set_options(&making);
	rc = wish->mode == CTK_CDI_CSV ? plan_board(&making) : plan_common(&making);
	if (rc < 0)
		return graft_wrap(err, "failed to create edits common for entities");
	if (add_devices(&making) < 0)
		return graft_wrap(err, "failed to create device CDI specs");
	if (making.n_devices == 0)
		return fail_empty(&making);
	return make_specs(&making);
}

void ctk_cdi_specs_done(struct ctk_cdi_specs *specs)
{
	for (size_t i = 0; i < specs->n_plans; i++)
		(void)graft_plan_free(specs->plans[i]);
	specs->n_plans = 0;
}
