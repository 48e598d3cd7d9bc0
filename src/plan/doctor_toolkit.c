/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_toolkit: judges the toolkit's own parts: config.toml, programs, CDI specs. */
#include <string.h>

#include "base/cleanup.h"
#include "plan/doctor_judge.h"

#define GPU_KIND "nvidia.com/gpu"

/* --- config.toml --- */

static bool is_known_mode(const char *mode)
{
	static const char *const modes[] = { "auto", "legacy", "cdi", "jit-cdi", "csv" };

	for (size_t i = 0; i < GRAFT_COUNT(modes); i++) {
		if (strcmp(mode, modes[i]) == 0)
			return true;
	}
	return false;
}

static bool has_engine_of_root(const struct graft_health *health)
{
	for (size_t i = 0; i < health->n_engines; i++) {
		if (!health->engines[i].rootless)
			return true;
	}
	return false;
}

/* Settings that are understood, and mean something that few people mean. Returns how many. */
static size_t judge_settings(struct graft_judge *judge)
{
	const struct graft_health_config *config = &judge->health->config;
	size_t n = 0;

	if (config->root_problem) {
		graft_judge_add(judge, GRAFT_CHECK_CONFIG, GRAFT_LEVEL_BROKEN, config->file,
				"nvidia-container-cli.root is %s: %s; the driver was looked for in / instead",
				config->root, config->root_problem)
		    ->remedy = "Run 'nvidia-ctk config --in-place --set nvidia-container-cli.root=/', or start the "
			       "container that brings the driver.";
		n++;
	}
	if (config->mode && !is_known_mode(config->mode)) {
		graft_judge_add(
		    judge, GRAFT_CHECK_CONFIG, GRAFT_LEVEL_BROKEN, config->file,
		    "nvidia-container-runtime.mode is '%s', which is none of auto, legacy, cdi, jit-cdi, csv",
		    config->mode)
		    ->remedy = "Run 'nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto'.";
		n++;
	}
	if (config->no_cgroups && has_engine_of_root(judge->health) && !judge->health->self.user_namespace) {
		graft_judge_add(
		    judge, GRAFT_CHECK_CONFIG, GRAFT_LEVEL_WARNING, config->file,
		    "nvidia-container-cli.no-cgroups is true for every container: those of root get the nodes, "
		    "and may not open them (Failed to initialize NVML: Unknown Error)")
		    ->remedy = "Run 'nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups=false': for "
			       "rootless containers it is decided one by one.";
		n++;
	}
	return n;
}

static void judge_config(struct graft_judge *judge)
{
	const struct graft_health_config *config = &judge->health->config;

	if (!config->file)
		return;
	if (config->problem)
		graft_judge_add(judge, GRAFT_CHECK_CONFIG, GRAFT_LEVEL_BROKEN, config->file,
				"cannot be used, so no GPU container starts: %s", config->problem)
		    ->remedy = "Correct it. 'nvidia-ctk config default' prints one that is right.";
	else if (judge_settings(judge) == 0)
		graft_judge_add(judge, GRAFT_CHECK_CONFIG, GRAFT_LEVEL_OK, config->file, "%s; mode %s",
				config->present ? "is right" : "is not there: defaults",
				config->mode ? config->mode : "auto");
}

/* --- programs --- */

/* Those of the toolkit that were not found, in one finding: a package brings all of them. */
static bool judge_own_programs(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const char *missing = NULL;

	for (size_t i = 0; i < health->n_programs; i++) {
		const struct graft_health_program *program = &health->programs[i];

		if (!program->path && strncmp(program->name, "nvidia-", strlen("nvidia-")) == 0)
			missing = missing ? graft_judge_text(judge, "%s, %s", missing, program->name) : program->name;
	}
	if (missing)
		graft_judge_add(judge, GRAFT_CHECK_PROGRAMS, GRAFT_LEVEL_WARNING, missing,
				"not in PATH, nor in any usual directory")
		    ->remedy = "Install the package of the container toolkit again.";
	return !missing;
}

static void judge_programs(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	bool good = judge_own_programs(judge);

	if (health->config.file && !health->config.problem && !health->config.runtime && health->config.n_runtimes > 0)
		graft_judge_add(
		    judge, GRAFT_CHECK_PROGRAMS, GRAFT_LEVEL_BROKEN, "low-level runtime",
		    "none is installed of those that config.toml names (%s, ...): nvidia-container-runtime has "
		    "nothing to hand on to",
		    health->config.runtimes[0])
		    ->remedy = "Install runc or crun, or name yours: 'nvidia-ctk config --in-place --set "
			       "nvidia-container-runtime.runtimes=/path/to/runc'.";
	else if (good && health->n_programs > 0)
		graft_judge_add(judge, GRAFT_CHECK_PROGRAMS, GRAFT_LEVEL_OK, "programs", "are there%s%s",
				health->config.runtime ? ", with the low-level runtime " : "",
				health->config.runtime ? health->config.runtime : "");
}

/* --- CDI --- */

static bool is_in_list(const char *const *items, size_t n, const char *item)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(items[i], item) == 0)
			return true;
	}
	return false;
}

/* An engine whose files switch CDI on and that looks for specs where there are none. */
static void judge_need(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const struct graft_health_cdi *cdi = &judge->health->cdi;

	if (!engine->has_cdi || !engine->cdi)
		return;
	if (!graft_judge_has_cdi_kind(judge, GPU_KIND)) {
		graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_WARNING, engine->name,
				"is set up for CDI, and no spec has devices %s (unresolvable CDI devices " GPU_KIND
				"=all)",
				GPU_KIND)
		    ->remedy = "Run 'nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml'.";
		return;
	}
	for (size_t i = 0; i < cdi->n_specs && engine->n_cdi_directories > 0; i++) {
		const char *slash = strrchr(cdi->specs[i].file, '/');
		const char *directory = graft_judge_text(judge, "%.*s", (int)(slash ? slash - cdi->specs[i].file : 0),
							 cdi->specs[i].file);

		if (is_in_list(engine->cdi_directories, engine->n_cdi_directories, directory))
			return;
	}
	if (engine->n_cdi_directories > 0)
		graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_WARNING, engine->name,
				"looks for CDI specs in %s, where there are none", engine->cdi_directories[0])
		    ->remedy = graft_judge_text(judge, "Run 'nvidia-ctk cdi generate --output=%s/nvidia.yaml'.",
						engine->cdi_directories[0]);
}

static void judge_specs(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const struct graft_health_cdi *cdi = &health->cdi;

	for (size_t i = 0; i < cdi->n_problems; i++)
		graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_BROKEN, cdi->problems[i].path,
				"cannot be used: %s", cdi->problems[i].problem)
		    ->remedy = "Remove it, or make it anew: 'nvidia-ctk cdi validate' names each fault with its line.";
	for (size_t i = 0; i < health->n_engines; i++)
		judge_need(judge, &health->engines[i]);
	if (cdi->n_specs > 0)
		graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "%zu spec%s", cdi->n_specs, cdi->n_specs == 1 ? "" : "s"),
				"with %zu devices", cdi->n_devices);
	else if (cdi->n_problems == 0)
		graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_OK,
				cdi->n_directories > 0 ? cdi->directories[0] : "/etc/cdi",
				"has no specs; they are needed for '--device " GPU_KIND "=...' only");
}

static void judge_stale(struct graft_judge *judge)
{
	const struct graft_health_cdi *cdi = &judge->health->cdi;
	size_t n = 0;

	for (size_t i = 0; i < cdi->n_specs; i++) {
		if (!cdi->specs[i].stale)
			continue;
		n++;
		graft_judge_add(judge, GRAFT_CHECK_CDI_STALE, GRAFT_LEVEL_BROKEN, cdi->specs[i].file, "is stale: %s",
				cdi->specs[i].stale)
		    ->remedy = strncmp(cdi->specs[i].kind, "nvidia.com/", strlen("nvidia.com/")) == 0
				   ? graft_judge_text(judge,
						      "Run 'nvidia-ctk cdi refresh', or 'nvidia-ctk cdi generate "
						      "--output=%s'.",
						      cdi->specs[i].file)
				   : "Make it anew with the tool of its vendor, or remove it.";
	}
	if (n == 0 && cdi->n_specs > 0)
		graft_judge_add(judge, GRAFT_CHECK_CDI_STALE, GRAFT_LEVEL_OK, "specs", "all that they name is there");
}

void graft_judge_toolkit(struct graft_judge *judge)
{
	judge_config(judge);
	judge_programs(judge);
	judge_specs(judge);
	judge_stale(judge);
}
