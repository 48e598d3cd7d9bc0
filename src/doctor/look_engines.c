/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_engines: what container engines have in common: a daemon with a start time and a PATH, files
 * that it reads, and runtimes and hooks that are ours. Each engine's own file interprets its
 * configuration.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/look.h"
#include "formats/toml/toml.h"

#define HOOK_PROGRAM "nvidia-container-runtime-hook"

struct graft_health_engine *graft_health_add_engine(struct graft_health_look *look, enum graft_health_engine_kind kind,
						    const char *name)
{
	struct graft_health *health = look->health;
	struct graft_health_engine *engine = graft_arena_push(look->arena, &health->engines, &health->n_engines,
							      sizeof(*engine));

	if (!engine)
		return NULL;
	engine->kind = kind;
	engine->name = graft_arena_strdup(look->arena, name);
	return engine;
}

struct graft_health_file *graft_health_add_file(struct graft_health_look *look, struct graft_health_engine *engine,
						const char *path, const char *problem)
{
	struct graft_health_file *file = graft_arena_push(look->arena, &engine->files, &engine->n_files, sizeof(*file));

	if (!file)
		return NULL;
	file->path = graft_arena_strdup(look->arena, path);
	file->problem = graft_arena_strdup(look->arena, problem);
	file->changed = graft_health_changed(look, path);
	file->imported = true;
	return file;
}

int graft_health_read_config(struct graft_health_look *look, struct graft_health_engine *engine, const char *path,
			     const char **ret_text, size_t *ret_length, struct graft_health_file **ret_file)
{
	int rc = graft_health_read_file(look, path, ret_text, ret_length);

	*ret_file = NULL;
	if (rc == -ENOENT || rc == -ENOTDIR)
		return -1;
	*ret_file = graft_health_add_file(look, engine, path, rc < 0 ? strerror(-rc) : NULL);
	return rc < 0 || !*ret_file ? -1 : 0;
}

struct graft_toml *graft_health_read_toml(struct graft_health_look *look, struct graft_health_engine *engine,
					  const char *path, struct graft_health_file **ret_file)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_toml *toml = NULL;
	const char *text;
	size_t length;

	if (graft_health_read_config(look, engine, path, &text, &length, ret_file) < 0 ||
	    graft_toml_parse(path, text, length, &toml, &err) == 0)
		return toml;
	graft_note_shortage(&look->survey.shortage, -err.sys);
	(*ret_file)->problem = graft_arena_strdup(look->arena, err.msg);
	return NULL;
}

/* The first error is kept. */
void graft_health_refuse(struct graft_health_look *look, struct graft_health_file *file, const struct graft_error *err)
{
	graft_note_shortage(&look->survey.shortage, -err->sys);
	if (!file->problem)
		file->problem = graft_arena_strdup(look->arena, err->msg);
}

void graft_health_push_runtime(struct graft_health_look *look, const struct graft_health_engine *engine,
			       struct graft_health_runtime **runtimes, size_t *n,
			       const struct graft_health_runtime *runtime)
{
	struct graft_health_runtime *row;

	if (!runtime->name || (!graft_health_is_ours(runtime->name) && !graft_health_is_ours(runtime->path)))
		return;
	row = graft_arena_push(look->arena, runtimes, n, sizeof(*row));
	if (!row)
		return;
	row->name = graft_arena_strdup(look->arena, runtime->name);
	row->path = graft_arena_strdup(look->arena, runtime->path);
	row->file = graft_arena_strdup(look->arena, runtime->file);
	row->table = graft_arena_strdup(look->arena, runtime->table);
	row->found = graft_health_find_program(look, runtime->path, engine->path ? engine->path : GRAFT_USUAL_PATH) !=
		     NULL;
}

void graft_health_add_runtime(struct graft_health_look *look, struct graft_health_engine *engine, const char *name,
			      const char *path, const char *file, const char *table)
{
	graft_health_push_runtime(
	    look, engine, &engine->runtimes, &engine->n_runtimes,
	    &(struct graft_health_runtime){ .name = name, .path = path, .file = file, .table = table });
}

/* --- daemons --- */

const char *graft_health_find_variable(const char *environment, size_t length, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = environment; at < environment + length; at += strlen(at) + 1) {
		if (strncmp(at, name, n) == 0 && at[n] == '=')
			return at + n + 1;
	}
	return NULL;
}

static void look_at_hook_program(struct graft_health_look *look, struct graft_health_engine *engine)
{
	engine->hook = graft_health_find_program(look, HOOK_PROGRAM, engine->path ? engine->path : GRAFT_USUAL_PATH);
	engine->hook_changed = graft_health_changed(look, engine->hook);
}

void graft_health_look_daemon(struct graft_health_look *look, struct graft_health_engine *engine,
			      const struct graft_health_process *process)
{
	const char *path, *program, *environment;
	size_t length;

	if (process) {
		engine->running = true;
		engine->started = process->started;
		if (!look->versions_only)
			engine->other_mounts = graft_health_has_other_mounts(look, process);
		path = graft_arena_printf(look->scratch, "%s/environ", process->directory);
		if (path && graft_health_read_file(look, path, &environment, &length) == 0)
			engine->path = graft_arena_strdup(look->arena,
							  graft_health_find_variable(environment, length, "PATH"));
		path = graft_arena_printf(look->scratch, "%s/exe", process->directory);
		program = path ? graft_health_read_link(look, path) : NULL;
		engine->program = program ? program : engine->program;
	}
	engine->snap = engine->program && (graft_starts_with(engine->program, "/snap/") ||
					   graft_starts_with(engine->program, "/var/lib/snapd/"));
	if (!look->versions_only)
		look_at_hook_program(look, engine);
}

void graft_health_look_engines(struct graft_health_look *look)
{
	graft_health_look_docker(look);
	graft_health_look_containerd(look);
	graft_health_look_crio(look);
	graft_health_look_podman(look);
}
