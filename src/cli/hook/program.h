/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program: who does the work: we ourselves, or the nvidia-container-cli that config.toml names; and the environment in which we, or it, run.
 */
#ifndef GRAFT_CLI_HOOK_PROGRAM_H
#define GRAFT_CLI_HOOK_PROGRAM_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "request/config.h"

#define HOOK_KEPT_MAX 8

/* The environment that we were called with, and what we keep of it. */
struct hook_environment {
	char **given;                  /* as the kernel gave it */
	char *kept[HOOK_KEPT_MAX + 1]; /* ended by NULL */
};

/*
 * First act of the program: descriptors that nobody meant for us are closed, and of the environment only what we read stays. `environment`
 * must live as long as the process.
 */
void hook_environment_take(struct hook_environment *environment);

/* Whether `path`, of nvidia-container-cli.path, is the program beside us; "" and NULL are. */
bool hook_program_is_own(const char *path);

/* Before our own code does the work: nvidia-container-cli.environment, as far as it reads variables (docs/hook.md), and PATH as SPEC 11.7. */
int hook_environment_apply(const struct graft_config *config, struct graft_arena *arena, struct graft_error *err);

/* Becomes the program argv[0]. Returns only with the error "exec failed: ...". */
int hook_program_exec(const struct hook_environment *environment, const struct graft_config *config, char **argv,
		      struct graft_arena *arena, struct graft_error *err);

/* SPEC 11.7: `path` and the usual directories; before them the same below the driver root. NULL: memory. */
const char *hook_search_path(const char *path, const char *root, struct graft_arena *arena);

#endif
