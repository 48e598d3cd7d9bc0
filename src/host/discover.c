/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover: the order in which a host is examined. Each concern adds its facts in a file of its
 * own; this file decides which of them run, and never returns a partial inventory.
 */
#include "host/discover.h"

#include "base/cleanup.h"
#include "formats/procfs.h"
#include "host/survey.h"

void graft_survey_platform(struct graft_survey *survey)
{
	survey->inventory->platform = GRAFT_PLATFORM_NATIVE;
	graft_survey_platform_wsl(survey);
	if (survey->inventory->platform == GRAFT_PLATFORM_NATIVE && graft_survey_is_tegra(survey))
		survey->inventory->platform = GRAFT_PLATFORM_TEGRA;
	graft_debug(survey->log, "platform is %s", graft_platform_names[survey->inventory->platform]);
}

static void look_at_all_drm(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (!inventory->gpus[i].excluded)
			graft_survey_drm(survey, &inventory->gpus[i]);
	}
}

void graft_survey_look(struct graft_survey *survey)
{
	/* In order: later rows use the results of earlier ones, as MIG uses the GPUs. */
	static const struct {
		unsigned int needs; /* any of them */
		void (*look)(struct graft_survey *survey);
	} concerns[] = {
		{ GRAFT_NEED_BINARIES, graft_survey_binaries },
		{ GRAFT_NEED_FIRMWARE, graft_survey_firmware },
		{ GRAFT_NEED_NODES, graft_survey_nodes },
		{ GRAFT_NEED_IPCS, graft_survey_ipcs },
		{ GRAFT_NEED_GPUS | GRAFT_NEED_MIG | GRAFT_NEED_MIG_CAPS, graft_survey_gpus },
		{ GRAFT_NEED_MIG | GRAFT_NEED_MIG_CAPS, graft_survey_mig },
		{ GRAFT_NEED_PROC_FILES, graft_survey_proc_files },
		{ GRAFT_NEED_EXTRA_FILES, graft_survey_extra_files },
		{ GRAFT_NEED_FURTHER, graft_survey_xorg },
		{ GRAFT_NEED_DRM, look_at_all_drm },
		{ GRAFT_NEED_MANAGEMENT, graft_survey_management },
	};

	for (size_t i = 0; i < GRAFT_COUNT(concerns); i++) {
		if (survey->needs & concerns[i].needs)
			concerns[i].look(survey);
	}
	graft_survey_imex(survey);
	graft_survey_gates(survey);
}

/*
 * Determines which GPUs have a MIG mode. Only mig-config and mig-monitor, for administrators'
 * tools, need this. NVML knows; without it, a GPU without instances is treated as one without MIG,
 * so that no access is given away.
 */
static void decide_mig(struct graft_survey *survey)
{
	struct graft_error err;

	if (!(survey->needs & GRAFT_NEED_MIG_CAPS) || !survey->mig_undecided)
		return;
	if (graft_host_complete(survey->options, survey->inventory, GRAFT_NVML_MIG, &err) < 0)
		graft_survey_omit(survey, "skipping", "MIG mode", "only NVML knows which GPUs have one: %s", err.msg);
}

/*
 * On some hosts procfs does not show the driver: in a sandbox, or where a mock NVML simulates one.
 * NVML is asked only there, because it wakes the GPUs.
 */
static int look_behind_procfs(struct graft_survey *survey, struct graft_error *err)
{
	bool unknown = !survey->module_loaded;
	struct graft_error why = { .status = GRAFT_OK };
	char text[sizeof(why.msg) + sizeof(why.ctx)];

	if (survey->inventory->platform != GRAFT_PLATFORM_NATIVE || survey->options->without_driver ||
	    !survey->inventory->nvml_library ||
	    (!unknown && (!(survey->needs & GRAFT_NEED_GPUS) || survey->gpus_listed)))
		return 0;
	if (graft_survey_gpus_by_nvml(survey, &why) == 0) {
		if (unknown && survey->inventory->n_gpus == 0)
			return graft_fail(err, GRAFT_NO_DRIVER, 0, "nvml error: driver not loaded");
		return 0;
	}
	if (why.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	if (unknown) {
		(void)graft_fail(err, GRAFT_NO_DRIVER, 0, "nvml error: driver not loaded");
		return why.status == GRAFT_NO_DRIVER
			   ? -1
			   : graft_wrap(err, "the kernel shows no driver, and NVML cannot be asked: %s",
					graft_error_text(&why, text, sizeof(text)));
	}
	graft_survey_omit(survey, "skipping", "GPUs", "procfs does not list them, and NVML fails: %s", why.msg);
	return 0;
}

int graft_host_discover(const struct graft_host_options *options, unsigned int needs,
			struct graft_inventory **ret_inventory, struct graft_error *err)
{
	auto_survey struct graft_survey survey = GRAFT_SURVEY_INIT;
	const unsigned int wsl_facts = GRAFT_NVML_UUID | GRAFT_NVML_MODEL;

	if (graft_survey_open(&survey, options, needs, err) < 0)
		return -1;
	graft_survey_platform(&survey);
	graft_survey_versions(&survey);
	graft_survey_libraries(&survey);
	/*
	 * Before the states: a search cut short by lack of memory must not look like a missing
	 * library.
	 */
	if (graft_survey_check(&survey, "the driver of this host", err) < 0)
		return -1;
	if (!options->without_driver && graft_survey_states(&survey, err) < 0)
		return -1;
	graft_survey_look(&survey);
	if (graft_survey_check(&survey, "the driver of this host", err) < 0)
		return -1;
	if (look_behind_procfs(&survey, err) < 0)
		return -1;
	decide_mig(&survey);
	/* WSL2 has no procfs of the driver: only NVML knows which GPUs there are. */
	if (survey.inventory->platform == GRAFT_PLATFORM_WSL2 && (needs & GRAFT_NEED_GPUS) &&
	    graft_host_complete(options, survey.inventory, wsl_facts, err) < 0)
		return -1;
	*ret_inventory = TAKE_PTR(survey.inventory);
	return 0;
}

/* Places that are not PCI addresses are ignored, so those GPUs are read normally. */
static int assume(struct graft_survey *survey, const char *const *places, size_t n, struct graft_error *err)
{
	struct graft_pci_address *addresses = graft_arena_list(survey->scratch, n, sizeof(*addresses));

	if (n > 0 && !addresses)
		return graft_fail_memory(err);
	for (size_t i = 0; i < n; i++)
		survey->n_assumed += graft_pci_parse(places[i], &addresses[survey->n_assumed]);
	survey->assumed = addresses;
	return 0;
}

int graft_host_identify(const struct graft_host_options *options, const char *const *assumed, size_t n_assumed,
			struct graft_inventory **ret_inventory, struct graft_error *err)
{
	auto_survey struct graft_survey survey = GRAFT_SURVEY_INIT;

	if (graft_survey_open(&survey, options, GRAFT_NEED_GPUS | GRAFT_NEED_MIG, err) < 0 ||
	    assume(&survey, assumed, n_assumed, err) < 0)
		return -1;
	graft_survey_platform(&survey);
	graft_survey_versions(&survey);
	if (survey.inventory->platform == GRAFT_PLATFORM_NATIVE) {
		graft_survey_gpus(&survey);
		graft_survey_mig(&survey);
	}
	if (graft_survey_check(&survey, "the driver of this host", err) < 0)
		return -1;
	*ret_inventory = TAKE_PTR(survey.inventory);
	return 0;
}
