/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook: nvidia-container-runtime-hook, which a container runtime calls while it creates a container (SPEC runtime-and-hook 11). It finds out what
 * the container asks for and gives it that, in this process; a container that asks for nothing costs two files read.
 */
#ifndef GRAFT_CLI_HOOK_HOOK_H
#define GRAFT_CLI_HOOK_HOOK_H

#include "cli/hook/program.h"

/* The program; returns its exit status. */
int hook_main(const struct hook_environment *environment, int argc, char **argv);

#endif
