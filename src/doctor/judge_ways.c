/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_ways: which ways to a GPU are set up on the host, and which of them work: the verdict that
 * a user came for. Follows from the facts and from the findings that are already there.
 */
#include <string.h>

#include "base/cleanup.h"
#include "doctor/judge_state.h"

#define GPU_KIND "nvidia.com/gpu"

/* Whatever the way, no container can use a GPU while one of these is broken. */
static const enum graft_check common[] = {
	GRAFT_CHECK_KERNEL_MODULE, GRAFT_CHECK_DEVICE_NODES,   GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_CHECK_LIBRARY_VERSIONS,
	GRAFT_CHECK_NVML,          GRAFT_CHECK_FABRIC_MANAGER, GRAFT_CHECK_CGROUP,
};

static bool is_broken(const struct graft_judge *judge, enum graft_check check)
{
	const struct graft_diagnosis *diagnosis = judge->diagnosis;

	for (size_t i = 0; i < diagnosis->n_findings; i++) {
		if (diagnosis->findings[i].check == check && diagnosis->findings[i].level == GRAFT_LEVEL_BROKEN)
			return true;
	}
	return false;
}

/*
 * Returns the first check that is part of every way, or NULL. config.toml is not part of CDI
 * devices and nvidia-container-cli.
 */
static const char *find_obstacle(const struct graft_judge *judge, enum graft_judge_reader reader)
{
	if (graft_judge_count_gpus(judge) == 0 && is_broken(judge, GRAFT_CHECK_GPU))
		return graft_check_ids[GRAFT_CHECK_GPU];
	for (size_t i = 0; i < GRAFT_COUNT(common); i++) {
		if (is_broken(judge, common[i]))
			return graft_check_ids[common[i]];
	}
	return graft_judge_stops(judge, reader) ? graft_check_ids[GRAFT_CHECK_CONFIG] : NULL;
}

/* `problem` NULL: the way itself is as it should be. */
static void add_way(struct graft_judge *judge, const struct graft_health_engine *engine, enum graft_judge_reader reader,
		    const char *command, enum graft_level level, const char *problem)
{
	struct graft_diagnosis *diagnosis = judge->diagnosis;
	const char *obstacle = graft_judge_is_outside(judge, engine) || graft_judge_cannot_start(engine)
				   ? graft_check_ids[GRAFT_CHECK_ENGINES]
				   : find_obstacle(judge, reader);
	struct graft_way *way = graft_arena_push(judge->arena, &diagnosis->ways, &diagnosis->n_ways, sizeof(*way));

	if (!way)
		return;
	way->engine = engine->name;
	way->command = command;
	way->level = obstacle ? GRAFT_LEVEL_BROKEN : level;
	way->why = obstacle ? graft_judge_text(judge, "see %s", obstacle) : problem;
}

static void add_cdi_way(struct graft_judge *judge, const struct graft_health_engine *engine, const char *command)
{
	struct graft_judge_cdi cdi = graft_judge_cdi_of(judge, engine);

	switch (cdi.state) {
	case GRAFT_CDI_OFF:
	case GRAFT_CDI_NO_SPEC:
		return;
	case GRAFT_CDI_ELSEWHERE:
		add_way(judge, engine, GRAFT_READER_NONE, command, GRAFT_LEVEL_BROKEN,
			"its CDI spec is in another directory");
		return;
	case GRAFT_CDI_TOO_NEW:
		add_way(judge, engine, GRAFT_READER_NONE, command, GRAFT_LEVEL_BROKEN,
			graft_judge_text(judge, "the CDI spec is too new for %s", graft_judge_version(judge, engine)));
		return;
	case GRAFT_CDI_PERHAPS:
		add_way(judge, engine, GRAFT_READER_NONE, command, GRAFT_LEVEL_UNKNOWN,
			graft_judge_text(judge, "whether this version reads CDI %s", cdi.spec->version));
		return;
	case GRAFT_CDI_STALE:
		add_way(judge, engine, GRAFT_READER_NONE, command, GRAFT_LEVEL_BROKEN, "see cdi-stale");
		return;
	case GRAFT_CDI_WORKS:
		add_way(judge, engine, GRAFT_READER_NONE, command, GRAFT_LEVEL_OK, NULL);
		return;
	}
}

/* Adds the way of each runtime, whose name follows `before`. */
static void add_runtime_ways(struct graft_judge *judge, const struct graft_health_engine *engine,
			     const struct graft_health_runtime *runtimes, size_t n, const char *before)
{
	bool no_low_level = is_broken(judge, GRAFT_CHECK_PROGRAMS);

	for (size_t i = 0; i < n; i++)
		add_way(judge, engine, GRAFT_READER_RUNTIME, graft_judge_text(judge, "%s%s", before, runtimes[i].name),
			runtimes[i].found && !no_low_level ? GRAFT_LEVEL_OK : GRAFT_LEVEL_BROKEN,
			!runtimes[i].found ? "its program does not exist"
			: no_low_level     ? "see programs"
					   : NULL);
}

static void add_docker_ways(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const struct graft_health_answer *answer = &engine->answer;
	bool answers = graft_judge_docker_answers(engine);

	if (engine->snap || !(engine->program || engine->running))
		return;
	if (judge->health->inventory.platform != GRAFT_PLATFORM_TEGRA)
		add_way(judge, engine, GRAFT_READER_HOOK, "docker run --gpus all",
			!engine->hook                       ? GRAFT_LEVEL_BROKEN
			: graft_judge_is_hook_newer(engine) ? GRAFT_LEVEL_UNKNOWN
							    : GRAFT_LEVEL_OK,
			!engine->hook                       ? "see docker-gpus"
			: graft_judge_is_hook_newer(engine) ? "whether the daemon found the hook when it started"
							    : NULL);
	add_runtime_ways(judge, engine, answers ? answer->runtimes : engine->runtimes,
			 answers ? answer->n_runtimes : engine->n_runtimes, "docker run --runtime=");
	add_cdi_way(judge, engine, "docker run --device " GPU_KIND "=all");
}

static void add_containerd_ways(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	bool cli = graft_judge_find_program(judge, "nvidia-container-cli") != NULL;

	if (!engine->program && !engine->running && engine->n_files == 0)
		return;
	if (strcmp(engine->name, "containerd") == 0 && cli)
		add_way(judge, engine, GRAFT_READER_NONE, "ctr run --gpus 0", GRAFT_LEVEL_OK, NULL);
	if (!engine->no_cri) {
		add_runtime_ways(judge, engine, engine->runtimes, engine->n_runtimes, "pods with the runtime handler ");
		add_cdi_way(judge, engine, "pods with CDI devices");
	}
}

void graft_judge_ways(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	for (size_t i = 0; i < health->n_engines; i++) {
		const struct graft_health_engine *engine = &health->engines[i];

		switch (engine->kind) {
		case GRAFT_ENGINE_DOCKER:
			add_docker_ways(judge, engine);
			break;
		case GRAFT_ENGINE_CONTAINERD:
			add_containerd_ways(judge, engine);
			break;
		case GRAFT_ENGINE_CRIO:
			add_runtime_ways(judge, engine, engine->runtimes, engine->n_runtimes,
					 "pods with the runtime handler ");
			add_cdi_way(judge, engine, "pods with CDI devices");
			break;
		case GRAFT_ENGINE_PODMAN:
			add_cdi_way(judge, engine, "podman run --device " GPU_KIND "=all");
			add_runtime_ways(judge, engine, engine->runtimes, engine->n_runtimes, "podman run --runtime=");
			if (engine->n_hooks > 0)
				add_way(judge, engine, GRAFT_READER_HOOK, "podman run --env NVIDIA_VISIBLE_DEVICES=all",
					engine->hooks[0].found ? GRAFT_LEVEL_OK : GRAFT_LEVEL_BROKEN,
					engine->hooks[0].found ? NULL : "see podman");
			break;
		}
	}
}
