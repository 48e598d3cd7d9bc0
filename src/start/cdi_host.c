/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_host: collects the facts that a mode needs. Everything is read once. NVML, which wakes the
 * GPUs, is asked at most for names, coherence, graphics of MIG devices and the CUDA version of a
 * board.
 */
#include "start/cdi_host.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "base/strings.h"
#include "host/discover.h"
#include "host/platform.h"
#include "plan/cdi_devices.h"
#include "plan/plan_csv.h"
#include "start/pipeline.h"

static const char *or_default(const char *text, const char *otherwise)
{
	return text && text[0] != '\0' ? text : otherwise;
}

/* ---- mode ---- */

int graft_cdi_detect_mode(const struct graft_cdi_places *places, const struct graft_log *log,
			  enum graft_cdi_mode *ret_mode, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_platform_facts facts;

	if (graft_root_open(&root, or_default(places->driver_root, "/"), err) < 0)
		return -1;
	facts = graft_platform_detect(&root, NULL);
	if (facts.dxcore)
		*ret_mode = GRAFT_CDI_MODE_WSL;
	else if ((facts.tegra_files && !facts.nvml) || facts.integrated_gpu)
		*ret_mode = GRAFT_CDI_MODE_CSV;
	else
		*ret_mode = GRAFT_CDI_MODE_NVML;
	if (*ret_mode == GRAFT_CDI_MODE_NVML && !facts.nvml)
		graft_warn(log, "Unsupported platform detected: unknown; assuming nvml");
	graft_info(log, "Auto-detected mode as '%s'", graft_cdi_modes[*ret_mode].word);
	return 0;
}

/* ---- what to look up ---- */

/* Do not report files that this host lacks, or that are never used. */
static bool is_ordinary(const char *message)
{
	static const char *const beginnings[] = { "missing ", "leaving out " };

	for (size_t i = 0; i < GRAFT_COUNT(beginnings); i++) {
		if (strncmp(message, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	}
	return false;
}

/* Passes on the library's log of its steps. */
static void write_cdi_step(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	const struct graft_log *to = arg;
	bool nvml = graft_starts_with(file, "nvml") || graft_starts_with(file, "complete");

	if (level == GRAFT_LOG_WARN && !nvml && is_ordinary(message))
		level = GRAFT_LOG_INFO;
	if (level <= to->max)
		to->write(to->arg, level, file, line, message);
}

static unsigned int choose_cdi_needs(const struct graft_cdi_demand *demand, const struct graft_request *request)
{
	bool graphics = (demand->capabilities & (GRAFT_CAP_GRAPHICS | GRAFT_CAP_DISPLAY)) != 0;
	unsigned int needs = graft_pipeline_needs(request, GRAFT_STYLE_OCI);

	switch (demand->mode) {
	case GRAFT_CDI_MODE_NVML:
		return needs | GRAFT_NEED_GPUS | GRAFT_NEED_MIG | (graphics ? (unsigned int)GRAFT_NEED_DRM : 0u);
	case GRAFT_CDI_MODE_MANAGEMENT:
		return (needs | GRAFT_NEED_GPUS | GRAFT_NEED_MIG | GRAFT_NEED_MANAGEMENT) &
		       ~(unsigned int)GRAFT_NEED_EXTRA_FILES;
	case GRAFT_CDI_MODE_WSL:
		return needs;
	case GRAFT_CDI_MODE_CSV:
		return GRAFT_NEED_GPUS;
	case GRAFT_CDI_MODE_IMEX:
		return request->all_imex_channels ? GRAFT_NEED_IMEX : 0u;
	case GRAFT_CDI_MODE_GDS:
	case GRAFT_CDI_MODE_MOFED:
	case GRAFT_CDI_MODE_GDRCOPY:
	case GRAFT_CDI_MODE_NVSWITCH:
	case GRAFT_CDI_MODES:
		break;
	}
	return 0;
}

static bool is_about_gpus(enum graft_cdi_mode mode)
{
	return mode == GRAFT_CDI_MODE_NVML || mode == GRAFT_CDI_MODE_WSL || mode == GRAFT_CDI_MODE_MANAGEMENT;
}

static void set_cdi_host_options(const struct graft_cdi_demand *demand, const struct graft_cdi_places *places,
				 const struct graft_request *request, const struct graft_log *log,
				 struct graft_host_options *options)
{
	*options = (struct graft_host_options){
		.root = or_default(places->driver_root, NULL),
		.dev_root = or_default(places->dev_root, NULL),
		.nvml_uid = (uid_t)-1,
		.nvml_gid = (gid_t)-1,
		.path = places->path,
		.capabilities = demand->capabilities,
		.library_directories = places->library_directories,
		.n_library_directories = places->n_library_directories,
		.data_directories = places->data_directories,
		.n_data_directories = places->n_data_directories,
		.without_driver = !is_about_gpus(demand->mode),
		.without_nvml = demand->mode == GRAFT_CDI_MODE_MANAGEMENT,
		.log = log,
	};
	graft_pipeline_host_options(request, options);
}

/* ---- what only NVML knows ---- */

/* Asks NVML once for each kind of fact; what it does not report stays unknown. */
static int complete_cdi_facts(const struct graft_host_options *options, struct graft_inventory *inventory,
			      unsigned int facts, unsigned int *asked, struct graft_error *err)
{
	facts &= ~*asked;
	*asked |= facts;
	return graft_host_complete(options, inventory, facts, err);
}

/* An invalid id is reported later, when devices are made from ids. */
static bool is_bad_id(const struct graft_error *err)
{
	return err->status == GRAFT_UNKNOWN_DEVICE || err->status == GRAFT_INVALID;
}

static int complete_graphics(const struct graft_cdi_demand *demand, const struct graft_host_options *options,
			     struct graft_inventory *inventory, const struct graft_request *request,
			     struct graft_arena *arena, unsigned int *asked, struct graft_error *err)
{
	struct graft_cdi_choices choices;
	unsigned int facts = 0;
	struct graft_error why = { .status = GRAFT_OK };

	if (graft_cdi_choose(inventory, demand->ids, demand->n_ids, demand->namings, arena, &choices, &why) < 0) {
		if (is_bad_id(&why))
			return 0;
		*err = why;
		return -1;
	}
	for (size_t i = 0; i < choices.n; i++)
		facts |= graft_plan_missing_facts(request, &choices.items[i].selection);
	return complete_cdi_facts(options, inventory, facts, asked, err);
}

/* Names come first: they determine which devices exist. */
static int complete_gpus(const struct graft_cdi_demand *demand, const struct graft_host_options *options,
			 struct graft_inventory *inventory, const struct graft_request *request,
			 struct graft_arena *arena, struct graft_error *err)
{
	unsigned int asked = 0, facts = 0;

	for (int turn = 0; turn < 2; turn++) {
		struct graft_error why = { .status = GRAFT_OK };

		if (graft_cdi_missing_facts(inventory, demand->ids, demand->n_ids, demand->namings, arena, &facts,
					    &why) < 0) {
			if (is_bad_id(&why))
				return 0;
			*err = why;
			return -1;
		}
		if (demand->coherent)
			facts |= GRAFT_NVML_ADDRESSING;
		if (complete_cdi_facts(options, inventory, facts, &asked, err) < 0)
			return -1;
	}
	return complete_graphics(demand, options, inventory, request, arena, &asked, err);
}

/* ---- boards ---- */

static int read_board(const struct graft_cdi_places *places, const struct graft_log *log, struct graft_cdi_host *host,
		      struct graft_error *err)
{
	const struct graft_csv_options options = { .root = places->driver_root,
						   .dev_root = or_default(places->dev_root, NULL),
						   .files = places->csv_files,
						   .n_files = places->n_csv_files,
						   .ignored = places->csv_ignore_patterns,
						   .n_ignored = places->n_csv_ignore_patterns,
						   .library_directories = places->library_directories,
						   .n_library_directories = places->n_library_directories,
						   .log = log };
	struct graft_csv_inventory *csv = graft_arena_alloc(host->arena, sizeof(*csv));

	if (!csv)
		return graft_fail_memory(err);
	host->csv = csv;
	return graft_csv_discover(&options, host->arena, csv, err);
}

/*
 * The hook for compatibility libraries needs the CUDA version, which NVML reports (SPEC ctk-and-cdi
 * 4.10).
 */
static int ask_board(const struct graft_cdi_demand *demand, const struct graft_log *log, struct graft_cdi_host *host,
		     struct graft_error *err)
{
	struct graft_csv_facts *facts;

	if ((demand->disabled_hooks & GRAFT_HOOK_COMPAT) || demand->no_hooks || !host->inventory ||
	    !host->inventory->nvml_library)
		return 0;
	facts = graft_arena_alloc(host->arena, sizeof(*facts));
	if (!facts)
		return graft_fail_memory(err);
	host->csv_facts = facts;
	return graft_csv_ask(host->inventory, host->csv, false, log, host->arena, facts, err);
}

/* Looks up the display and render nodes of a board's discrete GPU, if it has one. */
static int look_at_cards(const struct graft_host_options *options, struct graft_inventory *inventory,
			 struct graft_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < inventory->n_gpus && rc == 0; i++) {
		if (!inventory->gpus[i].excluded && !graft_csv_is_integrated(&inventory->gpus[i]))
			rc = graft_host_look_at_gpus(options, inventory, &i, 1, err);
	}
	return rc;
}

/* ---- everything ---- */

static int read_boot_id(struct graft_cdi_host *host, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;

	if (graft_root_open(&root, "/", err) < 0)
		return -1;
	return graft_host_boot_id(&root, host->arena, &host->boot_id, err);
}

static int read_cdi_host(const struct graft_cdi_demand *demand, const struct graft_cdi_places *places,
			 const struct graft_request *request, const struct graft_log *log, struct graft_cdi_host *host,
			 struct graft_error *err)
{
	struct graft_host_options options;
	int rc;

	set_cdi_host_options(demand, places, request, log, &options);
	rc = read_boot_id(host, err);
	if (rc == 0 && demand->mode == GRAFT_CDI_MODE_CSV)
		rc = read_board(places, log, host, err);
	if (rc == 0)
		rc = graft_host_discover(&options, choose_cdi_needs(demand, request), &host->inventory, err);
	if (rc == 0 && demand->mode == GRAFT_CDI_MODE_NVML)
		rc = complete_gpus(demand, &options, host->inventory, request, host->arena, err);
	if (rc == 0 && demand->mode == GRAFT_CDI_MODE_CSV)
		rc = look_at_cards(&options, host->inventory, err);
	if (rc == 0 && demand->mode == GRAFT_CDI_MODE_CSV)
		rc = ask_board(demand, log, host, err);
	return rc;
}

int graft_cdi_read_host(const struct graft_cdi_demand *demand, const struct graft_cdi_places *places,
			struct graft_log *steps, struct graft_arena *arena, struct graft_cdi_host *ret_host,
			struct graft_error *err)
{
	struct graft_log log = { .write = write_cdi_step, .arg = steps, .max = steps->max };
	struct graft_request *request = graft_cdi_request(demand, err);
	int rc = request ? 0 : -1;

	*ret_host = (struct graft_cdi_host){ .arena = arena };
	if (rc == 0)
		rc = read_cdi_host(demand, places, request, &log, ret_host, err);
	(void)graft_request_free(request);
	return rc;
}

void graft_cdi_host_done(struct graft_cdi_host *host)
{
	host->inventory = graft_inventory_free(host->inventory);
}
