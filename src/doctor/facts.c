/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts: the order in which a host's health is examined, and the lifetime of the result. The files
 * look_*.c collect the facts.
 */
#include "doctor/facts.h"

#include <string.h>

#include "base/cleanup.h"
#include "doctor/look.h"

#define ARENA_MAX   ((size_t)64 << 20)
#define SCRATCH_MAX ((size_t)1 << 30) /* texts of all files; a single CDI spec may have 16 MiB */
#define NEEDS                                                                                               \
	(GRAFT_NEED_NODES | GRAFT_NEED_GPUS | GRAFT_NEED_MIG | GRAFT_NEED_LIBRARIES | GRAFT_NEED_BINARIES | \
	 GRAFT_NEED_FIRMWARE | GRAFT_NEED_IPCS | GRAFT_NEED_PROC_FILES)

/* The programs of the stack itself, and the low-level runtimes that they call. */
static const char *const programs[] = { "nvidia-container-runtime-hook",
					"nvidia-container-runtime",
					"nvidia-cdi-hook",
					"nvidia-container-cli",
					"runc",
					"crun" };

static struct graft_health *new_health(void)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_health *health = arena ? graft_arena_alloc(arena, sizeof(*health)) : NULL;

	if (!health) {
		(void)graft_arena_free(arena);
		return NULL;
	}
	health->version = GRAFT_HEALTH_VERSION;
	health->arena = arena;
	return health;
}

struct graft_health *graft_health_free(struct graft_health *health)
{
	if (!health)
		return NULL;
	(void)graft_arena_free(health->inventory.arena);
	return (struct graft_health *)(void *)graft_arena_free(health->arena);
}

/* Surveys everything that exists; the overall state of the driver is judged later. */
static void survey_driver(struct graft_survey *survey)
{
	graft_survey_platform(survey);
	graft_survey_versions(survey);
	graft_survey_libraries(survey);
	graft_survey_look(survey);
}

static void look_at_programs(struct graft_health_look *look)
{
	struct graft_health *health = look->health;
	const char *path = look->options->host.path ? look->options->host.path : GRAFT_USUAL_PATH;

	for (size_t i = 0; i < GRAFT_COUNT(programs); i++) {
		struct graft_health_program *program = graft_arena_push(look->arena, &health->programs,
									&health->n_programs, sizeof(*program));

		if (!program)
			return;
		program->name = programs[i];
		program->path = graft_health_find_program(look, programs[i], path);
		if (!program->path)
			program->path = graft_health_find_program(look, programs[i], GRAFT_USUAL_PATH);
	}
}

static void look_at_toolkit_config(struct graft_health_look *look)
{
	struct graft_health_config *config = &look->health->config;
	const char *path = look->options->host.path ? look->options->host.path : GRAFT_USUAL_PATH;

	if (!look->options->config)
		return;
	*config = *look->options->config;
	for (size_t i = 0; i < config->n_runtimes && !config->runtime; i++)
		config->runtime = graft_health_find_program(look, config->runtimes[i], path);
}

static int look_at_all(struct graft_health_look *look, struct graft_error *err)
{
	/* The order matters: engines need the processes; nodes and libraries need the survey. */
	static void (*const concerns[])(struct graft_health_look * look) = {
		graft_health_look_kernel,    graft_health_look_nodes,
		graft_health_look_libraries, graft_health_look_nvml,
		graft_health_look_processes, graft_health_look_security,
		look_at_toolkit_config,      look_at_programs,
		graft_health_look_cdi,       graft_health_look_engines,
		graft_health_look_cluster,
	};

	survey_driver(&look->survey);
	for (size_t i = 0; i < GRAFT_COUNT(concerns); i++)
		concerns[i](look);
	return graft_health_look_image(look, err);
}

static int examine_health(struct graft_health_look *look, struct graft_error *err)
{
	struct graft_survey *survey = &look->survey;

	if (graft_survey_open(survey, &look->options->host, look->versions_only ? 0 : NEEDS, err) < 0)
		return -1;
	look->host = survey->host.fd >= 0 ? &survey->host : &survey->root;
	look->arena = look->health->arena;
	if (look->versions_only)
		graft_health_look_engines(look);
	else if (look_at_all(look, err) < 0)
		return -1;
	if (graft_arena_failed(look->arena) || graft_arena_failed(look->scratch))
		return graft_fail_memory(err);
	return graft_survey_check(survey, "this host", err);
}

static int collect(const struct graft_health_options *options, bool versions_only, struct graft_health **ret_health,
		   struct graft_error *err)
{
	struct graft_health_look look = { .options = options,
					  .survey = GRAFT_SURVEY_INIT,
					  .health = new_health(),
					  .scratch = graft_arena_new(SCRATCH_MAX),
					  .versions_only = versions_only };
	int rc = look.health && look.scratch ? examine_health(&look, err) : graft_fail_memory(err);

	if (rc == 0 && !versions_only)
		look.health->inventory = *graft_survey_detach(&look.survey);
	graft_survey_close(&look.survey);
	(void)graft_arena_free(look.scratch);
	if (rc < 0)
		look.health = graft_health_free(look.health);
	else
		*ret_health = look.health;
	return rc;
}

int graft_health_collect(const struct graft_health_options *options, struct graft_health **ret_health,
			 struct graft_error *err)
{
	return collect(options, false, ret_health, err);
}

int graft_health_collect_readers(const struct graft_health_options *options, struct graft_health **ret_health,
				 struct graft_error *err)
{
	return collect(options, true, ret_health, err);
}

void graft_health_write(const struct graft_health *health, struct graft_buffer *out)
{
	graft_record_write(&graft_health_record, health, out);
}

int graft_health_read(const char *json, size_t length, struct graft_health **ret_health, struct graft_error *err)
{
	struct graft_health *health = new_health();
	struct graft_arena *arena;
	unsigned long version;

	if (!health)
		return graft_fail_memory(err);
	arena = health->arena;
	health->version = 0;
	if (graft_record_read(&graft_health_record, json, length, arena, health, err) < 0) {
		(void)graft_health_free(health);
		return graft_wrap(err, "health");
	}
	health->arena = arena;
	version = health->version;
	if (version != GRAFT_HEALTH_VERSION) {
		(void)graft_health_free(health);
		return graft_fail(err, GRAFT_UNSUPPORTED, 0, "unsupported version of health facts: %lu", version);
	}
	*ret_health = health;
	return 0;
}

const struct graft_health_module *graft_health_find_module(const struct graft_health *health, const char *name)
{
	for (size_t i = 0; i < health->kernel.n_modules; i++) {
		if (strcmp(health->kernel.modules[i].name, name) == 0)
			return &health->kernel.modules[i];
	}
	return NULL;
}

const char *graft_health_find_library_file(const struct graft_health *health, const char *soname)
{
	const struct graft_health_loader *loader = &health->loader;

	for (size_t i = 0; i < loader->n_libraries; i++) {
		if (strcmp(loader->libraries[i].soname, soname) == 0)
			return loader->libraries[i].file;
	}
	return NULL;
}

const struct graft_health_daemon *graft_health_find_daemon(const struct graft_health *health, const char *name)
{
	for (size_t i = 0; i < health->n_daemons; i++) {
		if (strcmp(health->daemons[i].name, name) == 0)
			return &health->daemons[i];
	}
	return NULL;
}
