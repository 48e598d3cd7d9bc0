/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_remove: removes the runtime and the hook of this package from the configuration of every
 * engine on this host before their programs are deleted; the packages call it when they are
 * removed. Refuses if containers could then no longer be started or stopped. See docs/removal.md.
 * doctor/facts.h and runtime_configure.c know what an engine's files contain.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "cli/ctk/ctk.h"
#include "cli/ctk/engine_containers.h"
#include "doctor/facts.h"
#include "engine/engine.h"

#define N_WORDS    4
#define MAX_NAMED  5
#define COMMAND    "nvidia-ctk runtime configure"
#define PROGRAM_IN "/usr/bin/"

static const char *const runtime_names[] = { "nvidia-container-runtime", "nvidia-container-runtime.cdi",
					     "nvidia-container-runtime.legacy", NULL };
static const char *const hook_names[] = { "nvidia-container-runtime-hook", "nvidia-container-toolkit", NULL };

struct removal {
	struct ctk_base base;
	bool dry_run, hooks_only;
};

/* ---- what is of this package ---- */

/* A program elsewhere, such as one that an operator installs, stays when the package is removed. */
static bool names_program(const char *path, const char *const *names)
{
	bool here = path && (!strchr(path, '/') || strncmp(path, PROGRAM_IN, strlen(PROGRAM_IN)) == 0);

	for (size_t i = 0; here && names[i]; i++) {
		if (strcmp(graft_path_name(path), names[i]) == 0)
			return true;
	}
	return false;
}

static bool is_our_program(const char *path)
{
	return names_program(path, runtime_names);
}

/*
 * SECURITY: the user of a rootless engine decides where its files are, may replace their
 * directories at any moment, or may only pretend to have an engine.
 */
static bool is_of_other_user(const struct graft_health_engine *engine)
{
	return engine->rootless && geteuid() == 0;
}

/* K3s, RKE2 and MicroK8s generate their files, without runtimes that are not installed. */
static bool makes_its_own_files(const struct graft_health_engine *engine)
{
	return engine->kind == GRAFT_ENGINE_CONTAINERD && strcmp(engine->name, "containerd") != 0;
}

static const struct graft_engine *engine_of(const struct graft_health_engine *engine)
{
	switch (engine->kind) {
	case GRAFT_ENGINE_DOCKER:
		return &graft_engine_docker;
	case GRAFT_ENGINE_CONTAINERD:
		return &graft_engine_containerd;
	case GRAFT_ENGINE_CRIO:
		return &graft_engine_crio;
	case GRAFT_ENGINE_PODMAN:
		break;
	}
	return &graft_engine_podman;
}

/* ---- what must not be pulled away ---- */

/* The engine's default runtime if it is ours and a daemon uses it; else NULL. */
static const struct graft_health_runtime *default_in_use(const struct graft_health_engine *engine)
{
	if (!engine->running || engine->kind == GRAFT_ENGINE_PODMAN || !engine->default_runtime ||
	    is_of_other_user(engine))
		return NULL;
	for (size_t i = 0; i < engine->n_runtimes; i++) {
		if (strcmp(engine->runtimes[i].name, engine->default_runtime) == 0 &&
		    is_our_program(engine->runtimes[i].path))
			return &engine->runtimes[i];
	}
	return NULL;
}

static int check_defaults(struct ctk *ctk, const struct graft_health *health, struct graft_error *err)
{
	for (size_t i = 0; i < health->n_engines; i++) {
		const struct graft_health_engine *engine = &health->engines[i];
		const struct graft_health_runtime *runtime = default_in_use(engine);
		const char *hint;

		if (!runtime)
			continue;
		if (makes_its_own_files(engine) || engine->rootless || runtime->file[0] != '/')
			hint = graft_arena_printf(ctk->arena, "Give %s another default runtime and restart it first.",
						  engine->name);
		else
			hint = graft_arena_printf(
			    ctk->arena, "Run '" COMMAND " --runtime=%s --undo' and restart %s first; it is running.",
			    engine_of(engine)->name, engine->name);
		(void)graft_fail(
		    err, GRAFT_INVALID, 0,
		    "%s starts containers with the runtime '%s' by default, and could not start any without it",
		    engine->name, runtime->name);
		return hint ? graft_with_hint(err, hint) : graft_fail_memory(err);
	}
	return 0;
}

static int check_containers(struct ctk *ctk, struct graft_error *err)
{
	auto_buffer struct graft_buffer named = { .max = 0 };
	struct graft_strings ids;

	if (ctk_engine_containers(ctk, is_our_program, &ids, err) < 0)
		return -1;
	if (ids.n == 0)
		return 0;
	for (size_t i = 0; i < ids.n && i < MAX_NAMED; i++)
		graft_buffer_printf(&named, "%s%.12s", i == 0 ? "" : ", ", ids.items[i]);
	if (ids.n > MAX_NAMED)
		graft_buffer_string(&named, ", ...");
	if (graft_buffer_failed(&named))
		return graft_fail_memory(err);
	(void)graft_fail(err, GRAFT_INVALID, 0,
			 "%zu container%s run%s with nvidia-container-runtime and cannot be stopped without it: %s",
			 ids.n, ids.n == 1 ? "" : "s", ids.n == 1 ? "s" : "", graft_buffer_text(&named));
	return graft_with_hint(err, "Stop and remove them first.");
}

/* ---- taking away ---- */

/* Runs "runtime configure --undo" with these arguments, "" for none. Returns its exit status. */
static int run_undo(const struct removal *removal, const char *const words[N_WORDS])
{
	const char *const all[] = { "--undo", removal->dry_run ? "--dry-run" : "--dry-run=false",
				    words[0], words[1],
				    words[2], words[3] };

	return ctk_run_words(removal->base.ctk, &ctk_runtime_configure, all, GRAFT_COUNT(all));
}

/* A runtime is in the top-level file or in one of its drop-ins. */
static int undo_engine_runtime(const struct removal *removal, const struct graft_health_engine *engine,
			       const struct graft_health_runtime *runtime)
{
	struct graft_arena *arena = removal->base.ctk->arena;
	const struct graft_engine *known = engine_of(engine);
	const char *top = engine->kind == GRAFT_ENGINE_CONTAINERD && engine->n_files > 0 ? engine->files[0].path
											 : known->config_path;
	bool alone = !known->drop_in_path || strcmp(runtime->file, top) == 0;
	const char *const words[N_WORDS] = {
		graft_arena_printf(arena, "--runtime=%s", known->name),
		graft_arena_printf(arena, "--config=%s", known->drop_in_path ? top : runtime->file),
		known->drop_in_path ? graft_arena_printf(arena, "--drop-in-config=%s", alone ? "" : runtime->file) : "",
		graft_arena_printf(arena, "--nvidia-runtime-name=%s", runtime->name),
	};

	return run_undo(removal, words);
}

static int undo_engine_hook(const struct removal *removal, const struct graft_health_hook *hook)
{
	struct graft_arena *arena = removal->base.ctk->arena;
	const char *const words[N_WORDS] = {
		"--runtime=podman",
		"--config-mode=oci-hook",
		graft_arena_printf(arena, "--oci-hook-path=%s", hook->file),
		graft_arena_printf(arena, "--nvidia-runtime-hook-path=%s", hook->path),
	};

	return run_undo(removal, words);
}

static bool can_undo(const struct graft_health_engine *engine, const struct graft_health_runtime *runtime)
{
	return is_our_program(runtime->path) && runtime->file[0] == '/' && !makes_its_own_files(engine) &&
	       !is_of_other_user(engine);
}

/* CRI-O and Podman read the same files: each is undone for the first engine that reads it. */
static bool is_hook_to_undo(const struct graft_health *health, const struct graft_health_engine *engine,
			    const struct graft_health_hook *hook)
{
	for (const struct graft_health_engine *earlier = health->engines; earlier < engine; earlier++) {
		for (size_t i = 0; i < earlier->n_hooks; i++) {
			if (strcmp(earlier->hooks[i].file, hook->file) == 0)
				return false;
		}
	}
	return names_program(hook->path, hook_names);
}

static size_t count_found(const struct removal *removal, const struct graft_health *health)
{
	size_t n = 0;

	for (size_t i = 0; i < health->n_engines; i++) {
		const struct graft_health_engine *engine = &health->engines[i];

		for (size_t k = 0; !removal->hooks_only && k < engine->n_runtimes; k++)
			n += can_undo(engine, &engine->runtimes[k]);
		for (size_t k = 0; k < engine->n_hooks; k++)
			n += is_hook_to_undo(health, engine, &engine->hooks[k]);
	}
	return n;
}

/* Returns an exit status. */
static int remove_from_engine(const struct removal *removal, const struct graft_health *health,
			      const struct graft_health_engine *engine)
{
	int status = 0;

	for (size_t i = 0; !removal->hooks_only && i < engine->n_runtimes && status == 0; i++) {
		if (can_undo(engine, &engine->runtimes[i]))
			status = undo_engine_runtime(removal, engine, &engine->runtimes[i]);
	}
	for (size_t i = 0; i < engine->n_hooks && status == 0; i++) {
		if (is_hook_to_undo(health, engine, &engine->hooks[i]))
			status = undo_engine_hook(removal, &engine->hooks[i]);
	}
	return status;
}

/* ---- what is left ---- */

static int fail_left(struct graft_error *err, const char *file, const char *what)
{
	(void)graft_fail(err, GRAFT_INVALID, 0, "%s still names %s", file, what);
	return graft_with_hint(err, "It was changed by hand: remove that from the file, then try again.");
}

static int check_rest(const struct removal *removal, const struct graft_health *health, struct graft_error *err)
{
	for (size_t i = 0; i < health->n_engines; i++) {
		const struct graft_health_engine *engine = &health->engines[i];

		for (size_t k = 0; !removal->hooks_only && k < engine->n_runtimes; k++) {
			const struct graft_health_runtime *runtime = &engine->runtimes[k];

			if (can_undo(engine, runtime))
				return fail_left(err, runtime->file, runtime->path);
			if (is_our_program(runtime->path))
				graft_warn(&removal->base.ctk->log, "%s keeps the runtime '%s' until it is restarted",
					   engine->name, runtime->name);
		}
		for (size_t k = 0; k < engine->n_hooks; k++) {
			if (names_program(engine->hooks[k].path, hook_names))
				return fail_left(err, engine->hooks[k].file, engine->hooks[k].path);
		}
	}
	return 0;
}

/* ---- the command ---- */

static int collect_removals(struct ctk *ctk, struct graft_health **ret_health, struct graft_error *err)
{
	const struct graft_health_options options = {
		.host = { .capabilities = GRAFT_CAP_ALL, .log = ctk->log.max == GRAFT_LOG_DEBUG ? &ctk->steps : NULL },
	};

	return graft_health_collect(&options, ret_health, err);
}

/* An engine does not use a file that it cannot read itself, so the package may be removed. */
static void tell_problems(const struct ctk *ctk, const struct graft_health *health)
{
	for (size_t i = 0; i < health->n_engines; i++) {
		for (size_t k = 0; k < health->engines[i].n_files; k++) {
			const struct graft_health_file *file = &health->engines[i].files[k];

			if (file->problem)
				graft_warn(&ctk->log, "%s is left unchanged, because it cannot be parsed: %s",
					   file->path, file->problem);
		}
	}
}

static int check_before(const struct removal *removal, const struct graft_health *health, struct graft_error *err)
{
	struct ctk *ctk = removal->base.ctk;

	if (removal->hooks_only)
		return 0;
	return check_defaults(ctk, health, err) < 0 || check_containers(ctk, err) < 0 ? -1 : 0;
}

/*
 * Undoing one runtime restores what was in the file when it was configured, which may be another
 * one of ours. So repeat this as long as their number decreases.
 */
static int remove_in_rounds(const struct removal *removal, struct graft_health **health, struct graft_error *err)
{
	struct ctk *ctk = removal->base.ctk;
	size_t found = count_found(removal, *health), before = SIZE_MAX;
	int status = 0;

	if (found == 0)
		graft_info(&ctk->log, "%s: nothing was changed.",
			   removal->hooks_only ? "No engine of this host has a file that runs our hook"
					       : "No engine of this host is configured for our programs");
	while (found > 0 && found < before) {
		for (size_t i = 0; i < (*health)->n_engines && status == 0; i++)
			status = remove_from_engine(removal, *health, &(*health)->engines[i]);
		if (status != 0 || removal->dry_run)
			return status;
		*health = graft_health_free(*health);
		if (collect_removals(ctk, health, err) < 0)
			return -1;
		before = found;
		found = count_found(removal, *health);
	}
	return 0;
}

static int remove_from_engines(const struct removal *removal, struct graft_health **health, struct graft_error *err)
{
	int status;

	tell_problems(removal->base.ctk, *health);
	if (check_before(removal, *health, err) < 0)
		return -1;
	status = remove_in_rounds(removal, health, err);
	return status == 0 && !removal->dry_run ? check_rest(removal, *health, err) : status;
}

static const struct graft_option options[] = {
	{ .name = "dry-run",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct removal, dry_run),
	  .help = "Print what would change; write nothing" },
	{ .name = "hooks-only",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct removal, hooks_only),
	  .help = "Remove only hook files, and leave the runtimes" },
};

static int remove_runtime(void *target, struct graft_error *err)
{
	struct removal *removal = target;
	struct ctk *ctk = removal->base.ctk;
	struct graft_health *health = NULL;
	int status;

	/*
	 * The files are those of the packages, whatever the caller's variables say of "configure".
	 */
	ctk->no_variables = true;
	if (collect_removals(ctk, &health, err) < 0)
		return -1;
	status = remove_from_engines(removal, &health, err);
	health = graft_health_free(health);
	return status;
}

const struct graft_command ctk_runtime_remove = {
	CTK_COMMAND,
	.name = "remove",
	.summary = "Remove the NVIDIA runtime and its hook from all container engines",
	.description =
	    "Undoes \"configure\" for every engine of this host, as the removal of the packages does. Runtimes and "
	    "hooks whose programs are not of these packages stay. Refuses while a running engine uses the runtime "
	    "by default, and while containers run that were started with it. No engine is restarted.",
	GRAFT_OPTIONS(options),
	CTK_WORK(remove_runtime, struct removal),
};
