/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments: the command line of nvidia-container-runtime-hook (SPEC runtime-and-hook 11.1): flags of Go's style, then one command. What
 * follows the command is ignored.
 */
#ifndef GRAFT_CLI_HOOK_ARGUMENTS_H
#define GRAFT_CLI_HOOK_ARGUMENTS_H

#include <stdbool.h>

#include "base/options.h"

#define HOOK_PROGRAM "nvidia-container-runtime-hook"

enum hook_command { HOOK_NONE, HOOK_PRESTART, HOOK_POSTSTART, HOOK_POSTSTOP };

struct hook_arguments {
	enum hook_command command;
	const char *config; /* NULL = not given */
	bool debug;
};

extern const struct graft_command hook_program;

/*
 * Reads the words; a command that is not known, or none, is HOOK_NONE. *ret_result tells --help and --version apart. -1: GRAFT_INVALID,
 * what a person wrote wrong. The strings are argv's.
 */
int hook_arguments_read(int argc, char **argv, struct hook_arguments *ret_arguments,
			enum graft_parse_result *ret_result, struct graft_error *err);

#endif
