/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_spec: each mode yields a list of devices, each with a plan, and a plan of what they have in
 * common. apply/to_cdi.h turns plans into edits; here the edits get device names.
 */
#include "start/cdi_spec.h"

#include <string.h>

#include "apply/to_cdi.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/cdi/cdi_simplify.h"
#include "plan/cdi_devices.h"
#include "plan/plan_csv.h"
#include "plan/planner.h"
#include "plan/spec_hooks.h"

#define ALL        "all"
#define LINKS_HOOK "create-symlinks"

const struct graft_cdi_mode_row graft_cdi_modes[GRAFT_CDI_MODES] = {
#define X(name, word, vendor, class_, help) [GRAFT_CDI_MODE_##name] = { word, vendor, class_ },
	GRAFT_CDI_MODE_LIST(X)
#undef X
};

/*
 * What specifications are split by (SPEC ctk-and-cdi 1.5, feature flag
 * enable-coherent-annotations).
 */
enum coherence { UNKNOWN, COHERENT, NONCOHERENT };

struct making {
	const struct graft_cdi_demand *demand;
	const struct graft_cdi_host *host;
	struct graft_arena *arena;
	struct graft_cdi_specs *specs;
	struct graft_error *err;
	struct graft_cdi_options options;
	const struct graft_plan *common;
	struct graft_cdi_edits common_edits;
	struct graft_cdi_device *devices;
	size_t n_devices;
	enum coherence *coherence; /* parallel to `devices` */
	size_t n_coherence;
};

/* --- requests --- */

bool graft_cdi_set_feature(struct graft_cdi_demand *demand, const char *word)
{
	const struct {
		const char *word;
		bool *flag; /* NULL: known, but without effect here */
	} features[] = {
		{ "enable-explicit-driver-libraries", &demand->explicit_libraries },
		{ "enable-coherent-annotations", &demand->coherent },
		{ "disable-multiple-csv-devices", &demand->single_csv_device },
		{ "no-additional-gids-for-device-nodes", &demand->no_additional_gids },
		{ "disable-ipc-discoverer", &demand->no_daemons },
		{ "disable-nvsandboxutils", NULL },
		{ "disable-nvsandbox-utils", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(features); i++) {
		if (strcmp(word, features[i].word) != 0)
			continue;
		if (features[i].flag)
			*features[i].flag = true;
		return true;
	}
	return false;
}

static const struct {
	enum graft_cdi_mode mode;
	enum graft_gate gate;
} gates[] = {
	{ GRAFT_CDI_MODE_GDS, GRAFT_GATE_GDS },
	{ GRAFT_CDI_MODE_MOFED, GRAFT_GATE_MOFED },
	{ GRAFT_CDI_MODE_GDRCOPY, GRAFT_GATE_GDRCOPY },
	{ GRAFT_CDI_MODE_NVSWITCH, GRAFT_GATE_NVSWITCH },
};

static int request_channels(const struct graft_cdi_demand *demand, struct graft_request *request,
			    struct graft_error *err)
{
	for (size_t i = 0; i < demand->n_ids; i++) {
		if (graft_request_imex_word(request, demand->ids[i], err) < 0)
			return -1;
	}
	return 0;
}

struct graft_request *graft_cdi_request(const struct graft_cdi_demand *demand, struct graft_error *err)
{
	struct graft_request *request = graft_request_new();

	if (!request) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	request->capabilities = demand->capabilities;
	request->explicit_driver_libraries = demand->explicit_libraries;
	request->no_persistenced = request->no_fabricmanager = demand->no_daemons;
	/*
	 * MPS is started and stopped while the host is up; containers of a specification that names
	 * its directory would not start without it.
	 */
	request->no_mps = true;
	request->all_usable = true;
	request->management = demand->mode == GRAFT_CDI_MODE_MANAGEMENT;
	for (size_t i = 0; i < GRAFT_COUNT(gates); i++) {
		if (demand->mode == gates[i].mode)
			request->gates = 1u << gates[i].gate;
	}
	if (demand->mode == GRAFT_CDI_MODE_IMEX && request_channels(demand, request, err) < 0)
		return graft_request_free(request);
	return request;
}

/* --- plans --- */

/* Specifications point into the plans, so the plans must live as long as they do. */
static int keep_plan(struct making *making, struct graft_plan *take_plan)
{
	struct graft_cdi_specs *specs = making->specs;
	struct graft_plan **slot = graft_arena_push(making->arena, &specs->plans, &specs->n_plans, sizeof(*slot));

	if (!slot) {
		(void)graft_plan_free(take_plan);
		return graft_fail_memory(making->err);
	}
	*slot = take_plan;
	return 0;
}

/*
 * Returns the host reduced to what depends on the device. The other files are in the common plan
 * and would be dropped from each device's plan again; with many devices, planning them is nearly
 * all of the work.
 */
static struct graft_inventory without_files(const struct graft_inventory *inventory)
{
	struct graft_inventory rest = *inventory;

	rest.n_libraries = rest.n_libraries32 = rest.n_binaries = 0;
	rest.n_extra_files = rest.n_firmwares = rest.n_ipcs = 0;
	return rest;
}

static int plan_cdi_edits(struct making *making, const struct graft_request *request,
			  const struct graft_selection *selection, bool shared, struct graft_plan **ret_plan)
{
	const struct graft_inventory *inventory = making->host->inventory, rest = without_files(inventory);
	const struct graft_policy policy = { .style = GRAFT_STYLE_OCI,
					     .disabled_hooks = making->demand->disabled_hooks,
					     .shared = shared };

	if (graft_plan_make(shared ? inventory : &rest, request, &policy, selection, ret_plan, making->err) < 0)
		return -1;
	return keep_plan(making, *ret_plan);
}

/* Filters by the rule that made an edit; a mode that is not about GPUs gets only its own nodes. */
static bool is_cdi_edit_wanted(const struct making *making, const struct graft_edit *edit, bool shared)
{
	switch (making->demand->mode) {
	case GRAFT_CDI_MODE_NVML:
	case GRAFT_CDI_MODE_WSL:
	case GRAFT_CDI_MODE_CSV:
		return true;
	case GRAFT_CDI_MODE_MANAGEMENT: /* SPEC ctk-and-cdi 4.8: nothing that is needed for a display */
		return strcmp(edit->rule, "extra-file") != 0 && strcmp(edit->rule, "application-profile") != 0;
	case GRAFT_CDI_MODE_GDS:
	case GRAFT_CDI_MODE_MOFED:
	case GRAFT_CDI_MODE_GDRCOPY:
	case GRAFT_CDI_MODE_NVSWITCH:
	case GRAFT_CDI_MODE_IMEX:
		if (!shared)
			return graft_starts_with(edit->rule, "gate-") || strcmp(edit->rule, "imex-channel") == 0;
		/* SPEC ctk-and-cdi 4.4 (8): in all modes. */
		return edit->kind == GRAFT_EDIT_ENV && strcmp(edit->target, "NVIDIA_VISIBLE_DEVICES") == 0;
	case GRAFT_CDI_MODES:
		break;
	}
	return false;
}

static void cut(const struct making *making, struct graft_plan *made, bool shared)
{
	size_t n = 0;

	for (size_t i = 0; i < made->n_edits; i++) {
		if (is_cdi_edit_wanted(making, &made->edits[i], shared))
			made->edits[n++] = made->edits[i];
	}
	made->n_edits = n;
}

/* Sets the common plan: what all devices share. */
static int set_common(struct making *making, struct graft_plan *made)
{
	cut(making, made, true);
	making->common = made;
	return graft_plan_to_cdi(made, NULL, &making->options, making->arena, &making->common_edits, making->err);
}

static int plan_common(struct making *making)
{
	const struct graft_selection none = { .n_gpus = 0 };
	struct graft_cdi_demand demand = *making->demand;
	struct graft_request *request;
	struct graft_plan *made = NULL;
	int rc;

	demand.n_ids = 0; /* channels are devices of their own */
	request = graft_cdi_request(&demand, making->err);
	rc = request ? plan_cdi_edits(making, request, &none, true, &made) : -1;
	(void)graft_request_free(request);
	return rc < 0 ? -1 : set_common(making, made);
}

/* --- devices --- */

/* Adds one device under each of its names. */
static int add_cdi_device_names(struct making *making, struct graft_plan *made, const char *const *names,
				size_t n_names, enum coherence coherence)
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

/* SPEC ctk-and-cdi 4.6: only whole GPUs have it. */
static enum coherence coherence_of(const struct making *making, const struct graft_selection *selection)
{
	const char *addressing = selection->n_gpus > 0 ? selection->gpus[0]->addressing.value : NULL;

	if (!making->demand->coherent || selection->n_migs > 0 || !addressing)
		return UNKNOWN;
	return strcmp(addressing, "ats") == 0 ? COHERENT : NONCOHERENT;
}

static void add_cdi_warning(struct making *making, const char *text)
{
	if (text)
		(void)graft_arena_push_string(making->arena, &making->specs->warnings, &making->specs->n_warnings,
					      text);
}

static int add_choice(struct making *making, const struct graft_request *request, const struct graft_cdi_choice *choice)
{
	struct graft_plan *made;

	if (choice->n_names == 0) {
		add_cdi_warning(making, "a device is left out: the requested strategies give it no name");
		return 0;
	}
	if (plan_cdi_edits(making, request, &choice->selection, false, &made) < 0)
		return -1;
	return add_cdi_device_names(making, made, choice->names, choice->n_names,
				    coherence_of(making, &choice->selection));
}

static int add_cdi_gpus(struct making *making)
{
	const struct graft_cdi_demand *demand = making->demand;
	struct graft_request *request = graft_cdi_request(demand, making->err);
	struct graft_cdi_choices choices;
	int rc = request ? 0 : -1;

	if (rc == 0 && graft_cdi_choose(making->host->inventory, demand->ids, demand->n_ids, demand->namings,
					making->arena, &choices, making->err) < 0)
		rc = graft_wrap(making->err, "failed to construct device spec generators");
	for (size_t i = 0; rc == 0 && i < choices.n; i++)
		rc = add_choice(making, request, &choices.items[i]);
	(void)graft_request_free(request);
	return rc;
}

/* Adds the only device of a mode, which contains everything. */
static int add_sole_cdi_device(struct making *making)
{
	static const char *const names[] = { ALL };
	const struct graft_selection none = { .n_gpus = 0 };
	struct graft_request *request = graft_cdi_request(making->demand, making->err);
	struct graft_plan *made = NULL;
	int rc = request ? 0 : -1;

	/* On other platforms this would request their GPUs. */
	if (rc == 0 && making->demand->mode == GRAFT_CDI_MODE_WSL &&
	    making->host->inventory->platform == GRAFT_PLATFORM_WSL2)
		rc = graft_request_devices(request, ALL, making->err);
	if (rc == 0)
		rc = plan_cdi_edits(making, request, &none, false, &made);
	if (rc == 0)
		rc = add_cdi_device_names(making, made, names, 1, UNKNOWN);
	(void)graft_request_free(request);
	/* A device without nodes of its own does not exist. */
	if (rc == 0 && making->devices[0].edits.n_nodes == 0)
		making->n_devices = making->n_coherence = 0;
	return rc;
}

static int add_channel(struct making *making, uint32_t channel)
{
	const char *name = graft_arena_printf(making->arena, "%u", channel);
	struct graft_cdi_demand demand = *making->demand;
	struct graft_selection none = { .n_gpus = 0 };
	struct graft_request *request;
	struct graft_plan *made = NULL;
	int rc;

	if (!name)
		return graft_fail_memory(making->err);
	demand.ids = &name;
	demand.n_ids = 1;
	request = graft_cdi_request(&demand, making->err);
	rc = request ? plan_cdi_edits(making, request, &none, false, &made) : -1;
	(void)graft_request_free(request);
	return rc < 0 ? -1 : add_cdi_device_names(making, made, &name, 1, UNKNOWN);
}

static int add_channels(struct making *making)
{
	const struct graft_inventory *inventory = making->host->inventory;
	struct graft_request *request = graft_cdi_request(making->demand, making->err);
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
	const struct graft_csv_policy policy = { .disabled_hooks = making->demand->disabled_hooks };

	if (graft_csv_plan(making->host->csv, selection, &policy, ret_plan, making->err) < 0)
		return -1;
	return keep_plan(making, *ret_plan);
}

/* A board's GPU that the driver does not report has index 0. */
static int name_board_gpu(struct making *making, const struct graft_csv_selection *selection,
			  struct graft_cdi_choice *choice)
{
	const struct graft_gpu unknown = { .index = 0 };
	const struct graft_gpu *gpu = selection->integrated ? selection->integrated_gpu : selection->discrete_gpu;

	return graft_cdi_name(gpu ? gpu : &unknown, NULL, making->demand->namings, making->arena, choice, making->err);
}

static int add_board_gpu(struct making *making, const char *word)
{
	struct graft_cdi_choice choice = { .n_names = 0 };
	struct graft_csv_selection selection;
	struct graft_plan *made;
	const char *fallback;

	if (graft_csv_select(making->host->inventory, making->demand->single_csv_device, &word, 1, &selection,
			     &fallback, making->err) < 0 ||
	    name_board_gpu(making, &selection, &choice) < 0)
		return -1;
	for (size_t i = 0; i < making->n_devices; i++) {
		if (choice.n_names > 0 && strcmp(making->devices[i].name, choice.names[0]) == 0)
			return 0;
	}
	if (plan_csv(making, &selection, &made) < 0)
		return -1;
	return add_cdi_device_names(making, made, choice.names, choice.n_names, UNKNOWN);
}

/* SPEC ctk-and-cdi 4.10: "all" is each of the board's GPUs. */
static int add_board(struct making *making)
{
	static const char *const first[] = { "0", "1" };
	const struct graft_cdi_demand *demand = making->demand;
	const char *const *words = demand->ids;
	struct graft_csv_selection both;
	const char *fallback, *all = ALL;
	size_t n = demand->n_ids;

	if (graft_csv_select(making->host->inventory, demand->single_csv_device, &all, 1, &both, &fallback,
			     making->err) < 0)
		return -1;
	add_cdi_warning(making, fallback);
	for (size_t i = 0; i < demand->n_ids; i++) {
		if (strcmp(demand->ids[i], ALL) == 0) {
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

/* --- options of the hooks --- */

static void set_options(struct making *making)
{
	const struct graft_cdi_demand *demand = making->demand;
	const struct graft_csv_facts *facts = making->host->csv_facts;

	making->options = (struct graft_cdi_options){ .hook_path = demand->hook_path,
						      .ldconfig_path = demand->ldconfig_path,
						      .chmod = demand->chmod,
						      .no_hooks = demand->no_hooks,
						      .late_mounts = demand->late_mounts,
						      .no_additional_gids = demand->no_additional_gids };
	if ((demand->disabled_hooks & GRAFT_HOOK_COMPAT) != 0)
		return;
	if (demand->mode == GRAFT_CDI_MODE_NVML || demand->mode == GRAFT_CDI_MODE_MANAGEMENT)
		making->options.compat.driver_version = making->host->inventory->driver_version.value;
	if (demand->mode == GRAFT_CDI_MODE_CSV && facts && facts->from_nvml) {
		making->options.compat.cuda_version = facts->cuda;
		making->options.compat.directory = facts->orin ? demand->csv_compat_directory : NULL;
	}
}

/* --- specifications --- */

/* Adds a specification of the devices of one kind, or of all devices if UNKNOWN. */
static int add_cdi_spec_item(struct making *making, enum coherence coherence, const char *infix)
{
	const struct graft_cdi_demand *demand = making->demand;
	struct graft_cdi_item *item = &making->specs->items[making->specs->n];

	*item = (struct graft_cdi_item){ .infix = infix,
					 .spec = {
					     .vendor = demand->vendor,
					     .class_ = graft_arena_printf(making->arena, "%s%s", demand->class_, infix),
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

/*
 * Records which driver and GPUs the specification is for. In the other modes nothing depends on the
 * GPUs.
 */
static int add_provenance(struct making *making, struct graft_cdi_item *item)
{
	bool gpus = making->demand->mode == GRAFT_CDI_MODE_NVML || making->demand->mode == GRAFT_CDI_MODE_MANAGEMENT;
	struct graft_cdi_fingerprint fingerprint = { .boot_id = making->host->boot_id };
	int rc = 0;

	if (making->host->inventory)
		rc = graft_cdi_fingerprint_make(making->host->inventory, gpus, making->host->boot_id, making->arena,
						&fingerprint, making->err);
	fingerprint.flags = making->demand->flags;
	if (rc == 0)
		rc = graft_cdi_fingerprint_store(&fingerprint, making->demand->provenance, making->arena, &item->spec,
						 making->err);
	item->has_provenance = rc > 0;
	return rc < 0 ? -1 : 0;
}

/* Number of arguments of a hook before its links; 0 if it makes none. */
static size_t words_before_links(const struct graft_cdi_hook *hook)
{
	for (size_t i = 1; i < hook->n_args && i < 3; i++) {
		if (strcmp(hook->args[i], LINKS_HOOK) == 0)
			return i + 1;
	}
	return 0;
}

/* Copies pairs of "--link LINK". A device that has two names brings its links twice. */
static int add_cdi_hook_links(struct graft_cdi_hook *links, const struct graft_cdi_hook *hook, size_t from,
			      struct graft_arena *arena)
{
	for (size_t i = from; i + 1 < hook->n_args; i += 2) {
		if (graft_is_in(links->args, links->n_args, hook->args[i + 1]))
			continue;
		if (!graft_arena_push_string(arena, &links->args, &links->n_args, hook->args[i]) ||
		    !graft_arena_push_string(arena, &links->args, &links->n_args, hook->args[i + 1]))
			return -1;
	}
	return 0;
}

/*
 * Joins all hooks that make links into one: a single program can make the links of all GPUs. The
 * lists are shared with the devices that they come from, so they are copied.
 */
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
		if (add_cdi_hook_links(links, hook, from, arena) < 0)
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

static int finish_cdi_spec_item(struct making *making, struct graft_cdi_item *item)
{
	if (!making->demand->no_all_device && add_all_device(making, &item->spec) < 0)
		return -1;
	if (graft_cdi_simplify(&item->spec, making->arena, making->err) < 0)
		return -1;
	return add_provenance(making, item);
}

/* --- leases --- */

/*
 * Fills in the hook that takes a lease of `count` GPUs for the container and gives it these GPUs.
 */
static void fill_lease_hook(const struct making *making, const char *count, struct graft_cdi_hook *hook)
{
	const struct graft_cdi_demand *demand = making->demand;
	const char *const words[] = { graft_path_name(demand->lease_hook_path),
				      demand->config ? "--config" : NULL,
				      demand->config,
				      "lease",
				      "--count",
				      count };

	/*
	 * At this stage the container has a process and a cgroup, and the hook runs in the host's
	 * namespaces.
	 */
	*hook = (struct graft_cdi_hook){ .stage = "createRuntime", .path = demand->lease_hook_path };
	for (size_t i = 0; i < GRAFT_COUNT(words); i++)
		if (words[i])
			(void)graft_arena_push_string(making->arena, &hook->args, &hook->n_args, words[i]);
	(void)graft_arena_push_string(making->arena, &hook->env, &hook->n_env, GRAFT_HOOK_PATH);
}

static int fail_empty(const struct making *making)
{
	static const char *const noun[GRAFT_CDI_MODES] = {
		[GRAFT_CDI_MODE_CSV] = "GPU that the requested strategies can name",
		[GRAFT_CDI_MODE_GDRCOPY] = "/dev/gdrdrv",
		[GRAFT_CDI_MODE_GDS] = "/dev/nvidia-fs*",
		[GRAFT_CDI_MODE_IMEX] = "/dev/nvidia-caps-imex-channels/channel*",
		[GRAFT_CDI_MODE_MANAGEMENT] = "NVIDIA device node",
		[GRAFT_CDI_MODE_MOFED] = "/dev/infiniband/uverbs* or rdma_cm",
		[GRAFT_CDI_MODE_NVML] = "GPU that programs can run on",
		[GRAFT_CDI_MODE_NVSWITCH] = "/dev/nvidia-nvswitch*",
		[GRAFT_CDI_MODE_WSL] = "/dev/dxg",
	};

	return graft_fail(making->err, GRAFT_NOT_FOUND, 0, "no devices: this host has no %s (mode %s)",
			  noun[making->demand->mode], graft_cdi_modes[making->demand->mode].word);
}

static int add_cdi_mode_devices(struct making *making)
{
	switch (making->demand->mode) {
	case GRAFT_CDI_MODE_NVML:
		return add_cdi_gpus(making);
	case GRAFT_CDI_MODE_CSV:
		return add_board(making);
	case GRAFT_CDI_MODE_IMEX:
		return add_channels(making);
	case GRAFT_CDI_MODE_WSL:
	case GRAFT_CDI_MODE_MANAGEMENT:
	case GRAFT_CDI_MODE_GDS:
	case GRAFT_CDI_MODE_MOFED:
	case GRAFT_CDI_MODE_GDRCOPY:
	case GRAFT_CDI_MODE_NVSWITCH:
		return add_sole_cdi_device(making);
	case GRAFT_CDI_MODES:
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
	if (add_cdi_spec_item(making, UNKNOWN, "") < 0)
		return -1;
	if (has_coherence(making) && (add_cdi_spec_item(making, COHERENT, ".coherent") < 0 ||
				      add_cdi_spec_item(making, NONCOHERENT, ".noncoherent") < 0))
		return -1;
	for (size_t i = 0; i < making->specs->n; i++) {
		if (finish_cdi_spec_item(making, &making->specs->items[i]) < 0)
			return -1;
	}
	return graft_arena_failed(making->arena) ? graft_fail_memory(making->err) : 0;
}

int graft_cdi_make(const struct graft_cdi_demand *demand, const struct graft_cdi_host *host, struct graft_arena *arena,
		   struct graft_cdi_specs *ret_specs, struct graft_error *err)
{
	struct making making = { .demand = demand, .host = host, .arena = arena, .specs = ret_specs, .err = err };
	int rc;

	*ret_specs = (struct graft_cdi_specs){ .n = 0 };
	set_options(&making);
	rc = demand->mode == GRAFT_CDI_MODE_CSV ? plan_board(&making) : plan_common(&making);
	if (rc < 0)
		return graft_wrap(err, "failed to create edits common for entities");
	if (add_cdi_mode_devices(&making) < 0)
		return graft_wrap(err, "failed to create device CDI specs");
	if (making.n_devices == 0)
		return fail_empty(&making);
	return make_specs(&making);
}

void graft_cdi_specs_done(struct graft_cdi_specs *specs)
{
	for (size_t i = 0; i < specs->n_plans; i++)
		(void)graft_plan_free(specs->plans[i]);
	specs->n_plans = 0;
}

/*
 * The hook provides the driver's files: which ones a container gets does not depend on when the
 * specification was made.
 */
int graft_cdi_add_leases(const struct graft_cdi_demand *demand, const struct graft_cdi_host *host,
			 struct graft_arena *arena, struct graft_cdi_specs *specs, struct graft_error *err)
{
	struct making making = { .demand = demand, .host = host, .arena = arena, .specs = specs, .err = err };
	static const char *void_variable = "NVIDIA_VISIBLE_DEVICES=void";
	struct graft_cdi_item *item = &specs->items[specs->n++];
	struct graft_cdi_spec *spec = &item->spec;
	size_t n = graft_inventory_count_gpus(host->inventory);

	*item = (struct graft_cdi_item){ .infix = GRAFT_CDI_LEASE_INFIX,
					 .spec = { .vendor = demand->vendor, .class_ = GRAFT_CDI_LEASE } };
	/* Other hooks and runtimes do nothing for such a container. */
	(void)graft_arena_push_string(arena, &spec->edits.env, &spec->edits.n_env, void_variable);
	for (size_t i = 1; i <= n; i++) {
		struct graft_cdi_device *device = graft_arena_push(arena, &spec->devices, &spec->n_devices,
								   sizeof(*device));
		struct graft_cdi_hook *hook;

		if (!device)
			return graft_fail_memory(err);
		device->name = graft_arena_printf(arena, "%zu", i);
		hook = graft_arena_push(arena, &device->edits.hooks, &device->edits.n_hooks, sizeof(*hook));
		if (!device->name || !hook)
			return graft_fail_memory(err);
		fill_lease_hook(&making, device->name, hook);
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : add_provenance(&making, item);
}
