/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_program: how a statically linked program asks NVML. It cannot load a library, so its child
 * becomes graft-nvml, a dynamic program that does exactly what the child of other programs does
 * (host/nvml.h). See docs/decisions/0017-static-runtime.md.
 */
#ifndef GRAFT_CLI_RUNTIME_NVML_PROGRAM_H
#define GRAFT_CLI_RUNTIME_NVML_PROGRAM_H

#include <stdbool.h>

#include "host/nvml.h"

#define RUNTIME_NVML_PROGRAM "graft-nvml"

/* The arguments. Numbers are decimal. The answer is written to standard output. */
enum runtime_nvml_word {
	RUNTIME_NVML_NAME,
	RUNTIME_NVML_PARENT, /* the asking process; graft-nvml ends when it does */
	RUNTIME_NVML_ROOT,
	RUNTIME_NVML_LIBRARY,
	RUNTIME_NVML_FACTS,
	RUNTIME_NVML_CUDA, /* 0 or 1 */
	RUNTIME_NVML_UID,
	RUNTIME_NVML_GID,
	RUNTIME_NVML_WORDS
};

/* Parses the command line. The strings of the question point into argv. False: not a valid one. */
bool runtime_nvml_parse(int argc, const char *const *argv, struct graft_nvml_question *ret_question, pid_t *ret_parent);

#endif
