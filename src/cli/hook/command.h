/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: what a container asks for, as words of nvidia-container-cli (SPEC runtime-and-hook 11.3). The same words go to another program
 * and to our own code, so that there is one translation. Pure.
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
	const char *ldconfig;      /* normalised (SPEC 2.5); "" = none */
	const char *rootfs;        /* absolute */
	int64_t pid;
	bool debug; /* the hook's own flag */
};

/* The words, ended by NULL, in the arena; *ret_argc of them. -1: GRAFT_NO_MEMORY. */
int hook_command_make(const struct hook_request *request, struct graft_arena *arena, char ***ret_argv, int *ret_argc,
		      struct graft_error *err);

/*
 * The environment for another program: `environment` (ended by NULL) with each of `changes` ("NAME=VALUE") behind it, and no other entry of
 * that name (Q17). The last of several changes of one name counts. NULL: memory.
 */
char **hook_environment_make(char *const *environment, const struct graft_strings *changes, struct graft_arena *arena);

#endif
