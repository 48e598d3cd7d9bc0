/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: translates a container's request into arguments of nvidia-container-cli (SPEC
 * runtime-and-hook 11.3). The same arguments are passed to another program and to our own code, so
 * that there is only one translation. Pure.
 */
#ifndef GRAFT_CLI_HOOK_COMMAND_H
#define GRAFT_CLI_HOOK_COMMAND_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "request/config.h"
#include "request/container.h"

struct hook_request {
	const struct graft_config *config;
	const struct graft_container *container;
	unsigned int capabilities; /* GRAFT_CAP_* */
	const char *program;       /* argv[0] */
	const char *ldconfig;      /* normalised (SPEC runtime-and-hook 2.5); "" = none */
	const char *rootfs;        /* absolute */
	int64_t pid;
	bool debug; /* the hook's own flag */
};

/*
 * Makes the NULL-terminated argument vector in the arena, with *ret_argc arguments. -1:
 * GRAFT_NO_MEMORY.
 */
int hook_command_make(const struct hook_request *request, struct graft_arena *arena, char ***ret_argv, int *ret_argc,
		      struct graft_error *err);

/*
 * Makes the environment for another program: `environment` (NULL-terminated), followed by `changes`
 * ("NAME=VALUE"), which replace all entries of the same name (SPEC runtime-and-hook Q17). If a name
 * is changed several times, the last change applies. NULL: out of memory.
 */
char **hook_environment_make(char *const *environment, const struct graft_strings *changes, struct graft_arena *arena);

#endif
