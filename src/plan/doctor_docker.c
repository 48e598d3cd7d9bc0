/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_docker: judges Docker: `--gpus` needs the hook in the daemon's PATH when it starts, `--runtime=nvidia` an entry in daemon.json, and neither works
 * from snap or in Docker Desktop's virtual machine.
 */
#include <string.h>

#include "base/cleanup.h"
#include "plan/doctor_judge.h"

#define HOOK           "nvidia-container-runtime-hook"
#define NO_DRIVER_TEXT "could not select device driver \"\" with capabilities: [[gpu]]"

static const char *restart_command(const struct graft_health_engine *engine)
{
	return engine->rootless ? "systemctl --user restart docker" : "systemctl restart docker";
}

/* Kinds of Docker in which nothing of the host's toolkit can work. */
static bool judge_kind(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	if (engine->snap) {
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_BROKEN, engine->name,
				"it was installed by snap: its daemon sees neither this host's driver nor the toolkit "
				"(" NO_DRIVER_TEXT "; libnvidia-ml.so.1: cannot open shared object file)")
		    ->remedy = "Run 'snap remove docker', and install Docker's or the distribution's own packages.";
		return false;
	}
	if (engine->desktop) {
		graft_judge_add(
		    judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_WARNING, engine->name,
		    "Docker Desktop is installed: its containers run in a virtual machine, which has no GPU "
		    "(libnvidia-ml.so.1: cannot open shared object file)")
		    ->remedy = "Use Docker Engine: 'docker context use default'.";
		return engine->program || engine->running;
	}
	return true;
}

static void judge_gpus(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const char *elsewhere = graft_judge_find_program(judge, HOOK);
	struct graft_finding *finding;

	if (!engine->hook && elsewhere) {
		finding = graft_judge_add(judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_BROKEN, engine->name,
					  "%s is %s, which is not in the daemon's PATH%s%s (" NO_DRIVER_TEXT ")", HOOK,
					  elsewhere, engine->path ? ": " : "", engine->path ? engine->path : "");
		finding->remedy = graft_judge_text(judge, "Link it to /usr/bin: 'ln -s %s /usr/bin/%s', then '%s'.",
						   elsewhere, HOOK, restart_command(engine));
	} else if (!engine->hook) {
		finding = graft_judge_add(judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_BROKEN, engine->name,
					  "%s is not installed (" NO_DRIVER_TEXT ")", HOOK);
		finding->remedy = graft_judge_text(judge, "Install the package of the container toolkit, then '%s'.",
						   restart_command(engine));
	} else if (engine->running && engine->started > 0 && engine->hook_changed > engine->started) {
		finding = graft_judge_add(
		    judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_WARNING, engine->name,
		    "%s was installed after the daemon was started, which looks for it at its start "
		    "only (" NO_DRIVER_TEXT ")",
		    engine->hook);
		finding->remedy = graft_judge_text(judge, "Run '%s', unless '--gpus' works already.",
						   restart_command(engine));
	} else {
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_GPUS, GRAFT_LEVEL_OK, engine->name, "'--gpus' finds %s%s",
				engine->hook, engine->running ? "" : "; the daemon does not run");
	}
}

/* --- the runtime --- */

static const char *main_file(const struct graft_health_engine *engine)
{
	return engine->n_files > 0 ? engine->files[0].path : "/etc/docker/daemon.json";
}

static const char *configure_command(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	return graft_judge_text(judge, "nvidia-ctk runtime configure --runtime=docker%s%s && %s",
				engine->rootless ? " --config=" : "", engine->rootless ? main_file(engine) : "",
				engine->rootless ? "systemctl --user reload docker" : "systemctl reload docker");
}

static void judge_absent_runtime(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	bool needed = judge->health->inventory.platform == GRAFT_PLATFORM_TEGRA;

	graft_judge_add(judge, GRAFT_CHECK_DOCKER_RUNTIME, needed ? GRAFT_LEVEL_BROKEN : GRAFT_LEVEL_WARNING,
			engine->name,
			"the runtime nvidia is not registered in %s (unknown or invalid runtime name: nvidia)%s",
			main_file(engine), needed ? ": it is the only way on Tegra" : "; '--gpus' works without it")
	    ->remedy = graft_judge_text(judge, "Run '%s'.", configure_command(judge, engine));
}

static bool judge_runtime_program(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	for (size_t i = 0; i < engine->n_runtimes; i++) {
		const struct graft_health_runtime *runtime = &engine->runtimes[i];

		if (runtime->found)
			continue;
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_BROKEN, engine->name,
				"the runtime %s is %s, which is not there", runtime->name,
				runtime->path ? runtime->path : "without a program")
		    ->remedy = graft_judge_text(judge, "Install the package of the container toolkit, or run '%s'.",
						configure_command(judge, engine));
		return false;
	}
	return true;
}

/* A file that was changed while the daemon runs counts from the next reload. */
static const struct graft_health_file *find_newer(const struct graft_health_engine *engine)
{
	for (size_t i = 0; i < engine->n_files; i++) {
		if (engine->running && engine->started > 0 && engine->files[i].changed > engine->started)
			return &engine->files[i];
	}
	return NULL;
}

static void judge_runtime(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const struct graft_health_file *newer = find_newer(engine);

	if (engine->n_runtimes == 0) {
		judge_absent_runtime(judge, engine);
		return;
	}
	if (!judge_runtime_program(judge, engine))
		return;
	if (newer)
		graft_judge_add(
		    judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_WARNING, engine->name,
		    "%s was changed after the daemon was started: its runtimes are known only if the daemon "
		    "was reloaded (unknown or invalid runtime name)",
		    newer->path)
		    ->remedy = engine->rootless ? "Run 'systemctl --user reload docker'."
						: "Run 'systemctl reload docker'.";
	else
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_OK, engine->name,
				"the runtime %s is %s%s", engine->runtimes[0].name, engine->runtimes[0].path,
				engine->default_runtime &&
					strcmp(engine->default_runtime, engine->runtimes[0].name) == 0
				    ? ", and the default"
				    : "");
}

/* --- Swarm --- */

static bool is_known_uuid(const struct graft_inventory *inventory, const char *uuid)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		if (gpu->excluded)
			continue;
		/* A UUID that the driver does not know yet may be this one. */
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

		if (!equals || (strncmp(equals + 1, "GPU-", 4) != 0 && strncmp(equals + 1, "MIG-", 4) != 0) ||
		    is_known_uuid(&judge->health->inventory, equals + 1))
			continue;
		graft_judge_add(judge, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_LEVEL_BROKEN, engine->name,
				"%s promises %s to services, and this host has no such device (unknown device)",
				main_file(engine), equals + 1)
		    ->remedy =
		    "Correct 'node-generic-resources' by what 'nvidia-smi -L' lists, then 'systemctl restart "
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
		judge_gpus(judge, engine);
		judge_runtime(judge, engine);
		judge_resources(judge, engine);
	}
}
