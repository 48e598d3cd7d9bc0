/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_program: chooses the program that does the work, this one or the nvidia-container-cli that
 * config.toml names, and the environment that it runs in.
 */
#ifndef GRAFT_CLI_HOOK_HOOK_PROGRAM_H
#define GRAFT_CLI_HOOK_HOOK_PROGRAM_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/json/json_document.h"
#include "request/config.h"

/* The environment that the hook was called with, and the part of it that is trusted. */
struct hook_environment {
	char **given;    /* as received from the kernel */
	char **believed; /* NULL-terminated; empty before hook_environment_believe() */
	char *none[1];
};

/*
 * Has to be called first: closes all descriptors but the standard ones, and empties the
 * environment. `environment` must live as long as the process.
 */
void hook_environment_take(struct hook_environment *environment);

/*
 * SECURITY: a low-level runtime gives a hook without an environment its own, which an image can
 * influence at some stages. The environments that `document`, a config.json, gives to hooks come
 * from the engine: only variables that appear there with the same value are trusted. Of these, the
 * ones that we read become our environment. -1: GRAFT_NO_MEMORY.
 */
int hook_environment_believe(struct hook_environment *environment, const struct graft_json_document *document,
			     struct graft_arena *arena, struct graft_error *err);

/* Drops all trusted variables; call it before their arena is freed. */
void hook_environment_forget(struct hook_environment *environment);

/*
 * If nvidia-container-cli.path is a name without a directory, replaces it by the path of that
 * program. SECURITY: searches the PATH of nvidia-container-cli.environment and the standard
 * directories, and no PATH that the hook was called with. -1: GRAFT_NOT_FOUND, GRAFT_NO_MEMORY.
 */
int hook_program_find(struct graft_config *config, struct graft_arena *arena, struct graft_error *err);

/*
 * Whether `path`, the value of nvidia-container-cli.path, is the program next to this one; true for
 * "" and NULL.
 */
bool hook_program_is_own(const char *path);

/*
 * Prepares the environment for our own code: sets those variables of
 * nvidia-container-cli.environment that it reads (docs/hook.md), and PATH as in SPEC
 * runtime-and-hook 11.7. -1: GRAFT_NO_MEMORY.
 */
int hook_environment_apply(const struct graft_config *config, struct graft_arena *arena, struct graft_error *err);

/* Becomes the program argv[0]. Returns only on failure: "exec failed: ...", GRAFT_NO_MEMORY. */
int hook_program_exec(const struct hook_environment *environment, const struct graft_config *config, char **argv,
		      struct graft_arena *arena, struct graft_error *err);

/*
 * SPEC runtime-and-hook 11.7: the directories of `path` (may be NULL) and the standard ones,
 * preceded by the same directories below the driver root if there is one. NULL: out of memory.
 */
const char *hook_search_path(const char *path, const char *root, struct graft_arena *arena);

#endif
