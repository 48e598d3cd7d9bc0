/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments: the command line of nvidia-container-runtime-hook (SPEC runtime-and-hook 11.1): flags with one dash or two, then one command.
 * It is not the form of base/options.h: engines write "-config FILE", and what follows the command is ignored.
 */
#ifndef GRAFT_CLI_HOOK_ARGUMENTS_H
#define GRAFT_CLI_HOOK_ARGUMENTS_H

#include <stdbool.h>

#include "base/error.h"

enum hook_command { HOOK_NONE, HOOK_PRESTART, HOOK_POSTSTART, HOOK_POSTSTOP };

struct hook_arguments {
	enum hook_command command;
	const char *config; /* NULL = not given */
	bool debug, version, help;
};

/* -1: GRAFT_INVALID, what a person wrote wrong. A command that is not known, or none, is HOOK_NONE. The strings are argv's. */
int hook_arguments_read(int argc, char *const *argv, struct hook_arguments *ret_arguments, struct graft_error *err);

extern const char hook_usage[];

#endif
