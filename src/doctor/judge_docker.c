/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_docker: judges Docker: `--gpus` needs the hook in the daemon's PATH when the daemon starts,
 * `--runtime=nvidia` an entry in daemon.json, and neither works from snap or in Docker Desktop's
 * virtual machine.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/judge_state.h"

#define HOOK           "nvidia-container-runtime-hook"
#define NO_DRIVER_TEXT "could not select device driver \"\" with capabilities: [[gpu]]"

/*
 * Reports kinds of Docker in which the host's toolkit cannot work. Returns whether the other checks
 * apply.
 */
static bool judge_kind(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	if (engine->snap) {
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_BROKEN, engine->name,
				"was installed by snap: its daemon sees neither this host's driver nor the toolkit "
				"(" NO_DRIVER_TEXT "; libnvidia-ml.so.1: cannot open shared object file)")
		    ->remedy = "Run 'snap remove docker', and install Docker's or the distribution's own packages.";
		return false;
	}
	if (engine->desktop) {
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_WARNING, engine->name,
				"Docker Desktop is installed: its containers run in a virtual machine without a GPU "
				"(libnvidia-ml.so.1: cannot open shared object file)")
		    ->remedy = "Use Docker Engine: 'docker context use default'.";
		return engine->program || engine->running;
	}
	return true;
}

/*
 * QUIRK: an upgrade of the package makes the hook newer than the daemon as well, and nothing shows
 * whether there was an older one when the daemon started; so this is not a warning.
 */
bool graft_judge_is_hook_newer(const struct graft_health_engine *engine)
{
	return engine->running && engine->started > 0 && engine->hook_changed > engine->started;
}

static void judge_docker_gpus(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const char *elsewhere = graft_judge_find_program(judge, HOOK);
	struct graft_finding *finding;

	if (!engine->hook && elsewhere) {
		finding = graft_judge_add(judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_BROKEN, engine->name,
					  "%s is at %s, which is not in the daemon's PATH%s%s (" NO_DRIVER_TEXT ")",
					  HOOK, elsewhere, engine->path ? ": " : "", engine->path ? engine->path : "");
		finding->remedy = graft_judge_text(judge, "Run 'ln -s %s /usr/bin/%s && %s'.", elsewhere, HOOK,
						   graft_judge_systemctl(judge, engine, "restart"));
	} else if (!engine->hook) {
		finding = graft_judge_add(judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_BROKEN, engine->name,
					  "%s is not installed (" NO_DRIVER_TEXT ")", HOOK);
		finding->remedy = graft_judge_text(judge,
						   "Install the package nvidia-container-toolkit, then run '%s'.",
						   graft_judge_systemctl(judge, engine, "restart"));
	} else if (graft_judge_is_hook_newer(engine)) {
		finding = graft_judge_add(
		    judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_UNKNOWN, engine->name,
		    "%s was installed or upgraded after the daemon started, which looks for it only then: '--gpus' "
		    "works unless this was the first installation (" NO_DRIVER_TEXT ")",
		    engine->hook);
		finding->remedy = graft_judge_text(judge, "If '--gpus' does not work, run '%s'.",
						   graft_judge_systemctl(judge, engine, "restart"));
	} else {
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_OK, engine->name, "'--gpus' uses %s%s",
				engine->hook, engine->running ? "" : "; the daemon is not running");
	}
}

/* --- the runtime --- */

static const char *main_file(const struct graft_health_engine *engine)
{
	return engine->n_files > 0 ? engine->files[0].path : "/etc/docker/daemon.json";
}

static const char *docker_configure_command(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	return graft_judge_text(judge, "nvidia-ctk runtime configure --runtime=docker%s%s && %s",
				engine->rootless ? " --config=" : "", engine->rootless ? main_file(engine) : "",
				graft_judge_systemctl(judge, engine, "reload"));
}

/* '--gpus' does not need the runtime, so this is only wrong if something relies on it. */
static void judge_absent_docker_runtime(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	bool tegra = judge->health->inventory.platform == GRAFT_PLATFORM_TEGRA;
	const char *why = tegra                     ? ": on Tegra it is the only way to a GPU"
			  : engine->n_resources > 0 ? ": Swarm services, which cannot use '--gpus', get no GPU"
						    : "; '--gpus' works without it";

	graft_judge_add(judge, GRAFT_CHECK_DOCKER_RUNTIME,
			tegra                     ? GRAFT_LEVEL_BROKEN
			: engine->n_resources > 0 ? GRAFT_LEVEL_WARNING
						  : GRAFT_LEVEL_OK,
			engine->name,
			"the runtime nvidia is not registered in %s (unknown or invalid runtime name: nvidia)%s",
			main_file(engine), why)
	    ->remedy = graft_judge_text(judge, "Run '%s'.", docker_configure_command(judge, engine));
}

static bool judge_runtime_programs(struct graft_judge *judge, const struct graft_health_engine *engine,
				   const struct graft_health_runtime *runtimes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (runtimes[i].found)
			continue;
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_BROKEN, engine->name,
				"the program of the runtime %s does not exist: %s", runtimes[i].name,
				runtimes[i].path ? runtimes[i].path : "none is configured")
		    ->remedy = graft_judge_text(judge, "Install the package nvidia-container-toolkit, or run '%s'.",
						docker_configure_command(judge, engine));
		return false;
	}
	return true;
}

/* Returns a runtime that is in the file but not in the daemon, or NULL. */
static const char *find_unread_runtime(const struct graft_health_engine *engine)
{
	for (size_t i = 0; i < engine->n_runtimes; i++) {
		bool known = false;

		for (size_t k = 0; k < engine->answer.n_runtimes; k++)
			known |= strcmp(engine->answer.runtimes[k].name, engine->runtimes[i].name) == 0;
		if (!known)
			return engine->runtimes[i].name;
	}
	return NULL;
}

/* Compares the files with the daemon's answer. Returns whether they agree. */
static bool judge_docker_answer(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const struct graft_health_answer *answer = &engine->answer;
	const char *unread = find_unread_runtime(engine);
	struct graft_finding *finding;

	if (unread)
		finding = graft_judge_add(
		    judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_WARNING, engine->name,
		    "the running daemon does not know the runtime %s of %s: it has not read the file since it "
		    "was changed (unknown or invalid runtime name: %s)",
		    unread, main_file(engine), unread);
	else if (engine->default_runtime && answer->default_runtime &&
		 strcmp(engine->default_runtime, answer->default_runtime) != 0)
		finding = graft_judge_add(
		    judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_WARNING, engine->name,
		    "the running daemon's default runtime is %s, but %s names %s: the daemon has not read the "
		    "file since it was changed",
		    answer->default_runtime, main_file(engine), engine->default_runtime);
	else
		return true;
	finding->remedy = graft_judge_text(judge, "Run '%s'.", graft_judge_systemctl(judge, engine, "reload"));
	return false;
}

bool graft_judge_docker_answers(const struct graft_health_engine *engine)
{
	return engine->answer.asked && !engine->answer.problem;
}

static void judge_runtime(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const struct graft_health_answer *answer = &engine->answer;
	bool answers = graft_judge_docker_answers(engine);
	const struct graft_health_runtime *runtimes = answers ? answer->runtimes : engine->runtimes;
	size_t n = answers ? answer->n_runtimes : engine->n_runtimes;
	const char *default_runtime = answers ? answer->default_runtime : engine->default_runtime;

	if (answer->asked && !answers)
		graft_judge_add(
		    judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_UNKNOWN, engine->name,
		    "the daemon could not be asked which runtimes and CDI directories it has (%s: %s); what "
		    "follows is from its files",
		    answer->socket, answer->problem)
		    ->remedy = strcmp(answer->problem, strerror(EACCES)) == 0
				   ? "Run 'sudo nvidia-ctk doctor'."
				   : graft_judge_text(judge, "If its files were changed since it started, run '%s'.",
						      graft_judge_systemctl(judge, engine, "reload"));
	if (answers && !judge_docker_answer(judge, engine))
		return;
	if (n == 0)
		judge_absent_docker_runtime(judge, engine);
	else if (judge_runtime_programs(judge, engine, runtimes, n))
		graft_judge_add(
		    judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_OK, engine->name, "%s the runtime %s: %s%s",
		    answers ? "has" : "is configured with", runtimes[0].name, runtimes[0].path ? runtimes[0].path : "",
		    default_runtime && strcmp(default_runtime, runtimes[0].name) == 0 ? ", the default" : "");
}

/* --- Swarm --- */

static bool is_known_uuid(const struct graft_inventory *inventory, const char *uuid)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		if (gpu->excluded)
			continue;
		/* The UUID is not known to the driver yet, so it may be this one. */
		if (!gpu->uuid.value || strcmp(gpu->uuid.value, uuid) == 0)
			return true;
		for (size_t k = 0; k < gpu->n_mig_devices; k++) {
			const char *mig = gpu->mig_devices[k].uuid.value;

			if (!mig || strcmp(mig, uuid) == 0)
				return true;
		}
	}
	return false;
}

static void judge_resources(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	for (size_t i = 0; i < engine->n_resources; i++) {
		const char *equals = strchr(engine->resources[i], '=');

		if (!equals || (!graft_starts_with(equals + 1, "GPU-") && !graft_starts_with(equals + 1, "MIG-")) ||
		    is_known_uuid(&judge->health->inventory, equals + 1))
			continue;
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_BROKEN, engine->name,
				"%s promises %s to Swarm services, and this host has no such device (unknown device)",
				main_file(engine), equals + 1)
		    ->remedy =
		    "Set 'node-generic-resources' to GPUs that 'nvidia-smi -L' lists, then run 'systemctl restart "
		    "docker'.";
	}
}

void graft_judge_docker(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	for (size_t i = 0; i < health->n_engines; i++) {
		const struct graft_health_engine *engine = &health->engines[i];

		if (engine->kind != GRAFT_ENGINE_DOCKER || !judge_kind(judge, engine))
			continue;
		judge_docker_gpus(judge, engine);
		judge_runtime(judge, engine);
		judge_resources(judge, engine);
	}
}
