/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook: nvidia-container-runtime-hook, which a container runtime calls while it creates a container
 * (SPEC runtime-and-hook 11). It reads what the container requests and provides that in this
 * process. For a container that requests nothing it only reads two files.
 */
#ifndef GRAFT_CLI_HOOK_HOOK_H
#define GRAFT_CLI_HOOK_HOOK_H

#include "base/options.h"
#include "cli/cli.h"
#include "cli/hook/hook_program.h"
#include "plan/plan.h"
#include <stdbool.h>
#include <sys/types.h>

/* Runs the program and returns its exit status. `environment` is from hook_environment_take(). */
int hook_main(struct hook_environment *environment, int argc, char **argv);

/* A cli.planned callback: runs before the container is changed. Failures are only logged. */
void hook_announce_devices(struct cli *cli, const struct graft_plan *plan);

#define HOOK_PROGRAM "nvidia-container-runtime-hook"

enum hook_command { HOOK_NONE, HOOK_PRESTART, HOOK_POSTSTART, HOOK_POSTSTOP, HOOK_LEASE };

struct hook_arguments {
	enum hook_command command;
	const char *config;                /* NULL = not given */
	const char *claim, *count;         /* of HOOK_LEASE, not checked; NULL = not given */
	const struct graft_command *asked; /* what --help is about */
	bool debug;
};

extern const struct graft_command hook_program;

/*
 * Parses the command line. An unknown or missing command is HOOK_NONE. *ret_result distinguishes
 * --help and --version. The strings point into argv. -1: GRAFT_INVALID, with the user's mistake as
 * message.
 */
int hook_arguments_read(int argc, char **argv, struct hook_arguments *ret_arguments,
			enum graft_parse_result *ret_result, struct graft_error *err);

#endif
