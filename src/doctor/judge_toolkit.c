/* SPDX-License-Identifier: Apache-2.0 */
/* judge_toolkit: judges the toolkit's own parts: config.toml and programs. */
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/judge_state.h"

/* --- config.toml --- */

/* The consequence of a value that no program understands. */
static const struct consequence {
	const char *key;
	bool hook, runtime; /* prevents it from starting a container */
	const char *text;
} consequences[] = {
	{ "supported-driver-capabilities", true, false, "no container with '--gpus' starts" },
	{ "nvidia-container-cli.user", true, false, "no container with '--gpus' starts" },
	{ "nvidia-container-runtime.mode", true, true, "no container with a GPU starts" },
	{ "nvidia-container-runtime.log-level", false, false, "the level is info instead" },
	{ "nvidia-container-runtime.modes.cdi.default-kind", false, false,
	  "in mode cdi, devices without a kind are not found" },
	{ "nvidia-container-runtime.modes.jit-cdi.nvcdi-disable-hooks", false, false, "it disables no hook" },
	{ "nvidia-container-runtime.modes.legacy.cuda-compat-mode", false, false,
	  "containers do not use a newer CUDA of their image" },
	{ NULL, false, false, "it is ignored" },
};

static const struct consequence *find_consequence(const struct graft_config_mistake *mistake)
{
	const struct consequence *found = consequences;

	while (found->key && strcmp(found->key, mistake->key) != 0)
		found++;
	return found;
}

bool graft_judge_stops(const struct graft_judge *judge, enum graft_judge_reader reader)
{
	const struct graft_health_config *config = &judge->health->config;

	if (reader == GRAFT_READER_NONE)
		return false;
	for (size_t i = 0; i < config->n_mistakes; i++) {
		const struct consequence *consequence = find_consequence(&config->mistakes[i]);

		if (reader == GRAFT_READER_HOOK ? consequence->hook : consequence->runtime)
			return true;
	}
	return config->problem || config->root_problem;
}

static bool has_engine_of_root(const struct graft_health *health)
{
	for (size_t i = 0; i < health->n_engines; i++) {
		if (!health->engines[i].rootless)
			return true;
	}
	return false;
}

static void judge_mistake(struct graft_judge *judge, const struct graft_config_mistake *mistake)
{
	const struct consequence *consequence = find_consequence(mistake);
	bool broken = consequence->hook || consequence->runtime;

	graft_judge_add(judge, GRAFT_CHECK_CONFIG, broken ? GRAFT_LEVEL_BROKEN : GRAFT_LEVEL_WARNING,
			judge->health->config.file, "%s is '%s', so %s; it can be %s", mistake->key, mistake->value,
			consequence->text, mistake->allowed)
	    ->remedy = mistake->standard[0] != '\0'
			   ? graft_judge_text(judge, "Run 'nvidia-ctk config --in-place --set %s=%s'.", mistake->key,
					      mistake->standard)
			   : "Correct or remove it; 'man nvidia-container-runtime-config' describes every key.";
}

/* Reports settings that are valid but rarely intended. Returns how many there are. */
static size_t judge_settings(struct graft_judge *judge)
{
	const struct graft_health_config *config = &judge->health->config;
	size_t n = 0;

	if (config->root_problem) {
		graft_judge_add(judge, GRAFT_CHECK_CONFIG, GRAFT_LEVEL_BROKEN, config->file,
				"nvidia-container-cli.root is %s: %s; the driver was searched for in / instead",
				config->root, config->root_problem)
		    ->remedy = "Run 'nvidia-ctk config --in-place --set nvidia-container-cli.root=/', or start the "
			       "container that provides the driver.";
		n++;
	}
	for (size_t i = 0; i < config->n_mistakes; i++, n++)
		judge_mistake(judge, &config->mistakes[i]);
	for (size_t i = 0; i < config->n_unknown; i++, n++) {
		const char *text = config->unknown[i];
		size_t length = strlen(config->file);

		/* The finding names the file itself. */
		if (strncmp(text, config->file, length) == 0 && graft_starts_with(text + length, ": "))
			text += length + 2;
		graft_judge_add(judge, GRAFT_CHECK_CONFIG, GRAFT_LEVEL_WARNING, config->file, "%s", text)->remedy =
		    "Correct or remove it; 'man nvidia-container-runtime-config' lists every key.";
	}
	if (config->no_cgroups && has_engine_of_root(judge->health) && !judge->health->self.user_namespace) {
		graft_judge_add(
		    judge, GRAFT_CHECK_CONFIG, GRAFT_LEVEL_WARNING, config->file,
		    "nvidia-container-cli.no-cgroups is true for every container: containers of root get the "
		    "device nodes but cannot open them (Failed to initialize NVML: Unknown Error)")
		    ->remedy = "Run 'nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups=false'. "
			       "Rootless containers do not need the setting: each is detected.";
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
				"cannot be used, so no container with a GPU starts: %s", config->problem)
		    ->remedy = graft_judge_file_remedy(judge, config->problem,
						       "'nvidia-ctk config default' prints a correct one");
	else if (judge_settings(judge) == 0)
		graft_judge_add(judge, GRAFT_CHECK_CONFIG, GRAFT_LEVEL_OK, config->file, "%s; mode %s",
				config->present ? "is valid" : "does not exist, so the defaults apply",
				config->mode ? config->mode : "auto");
}

/* --- programs --- */

/*
 * Reports missing programs of the toolkit in one finding, since one package installs all of them.
 */
static bool judge_own_programs(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const char *missing = NULL;

	for (size_t i = 0; i < health->n_programs; i++) {
		const struct graft_health_program *program = &health->programs[i];

		if (!program->path && graft_starts_with(program->name, "nvidia-"))
			missing = missing ? graft_judge_text(judge, "%s, %s", missing, program->name) : program->name;
	}
	if (missing)
		graft_judge_add(judge, GRAFT_CHECK_PROGRAMS, GRAFT_LEVEL_WARNING, missing,
				"not found, neither in PATH nor in the usual directories")
		    ->remedy = "Install the package nvidia-container-toolkit again.";
	return !missing;
}

static void judge_programs(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	bool good = judge_own_programs(judge);

	if (health->config.file && !health->config.problem && !health->config.runtime && health->config.n_runtimes > 0)
		graft_judge_add(
		    judge, GRAFT_CHECK_PROGRAMS, GRAFT_LEVEL_BROKEN, "low-level runtime",
		    "config.toml names %s%s, and none is installed: nvidia-container-runtime cannot start containers",
		    health->config.runtimes[0], health->config.n_runtimes > 1 ? " and others" : "")
		    ->remedy = "Install runc or crun, or set the path of yours: 'nvidia-ctk config --in-place --set "
			       "nvidia-container-runtime.runtimes=/path/to/runc'.";
	else if (good && health->n_programs > 0)
		graft_judge_add(judge, GRAFT_CHECK_PROGRAMS, GRAFT_LEVEL_OK, "programs", "are installed%s%s",
				health->config.runtime ? "; low-level runtime: " : "",
				health->config.runtime ? health->config.runtime : "");
}

void graft_judge_toolkit(struct graft_judge *judge)
{
	judge_config(judge);
	judge_programs(judge);
}
