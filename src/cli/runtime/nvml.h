/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml: how a statically linked runtime asks NVML. Such a program cannot load a library; its child becomes graft-nvml, a dynamic program that does nothing else than
 * what the child of other programs does (host/nvml.h). docs/decisions/0017-static-runtime.md.
 */
#ifndef GRAFT_CLI_RUNTIME_NVML_H
#define GRAFT_CLI_RUNTIME_NVML_H

#include <stdbool.h>

#include "host/nvml.h"

#define RUNTIME_NVML_PROGRAM "graft-nvml"

/* Words of its command line. Numbers are decimal. The answer goes to its standard output. */
enum runtime_nvml_word {
	RUNTIME_NVML_NAME,
	RUNTIME_NVML_PARENT, /* process that asks: with it ends the program */
	RUNTIME_NVML_ROOT,
	RUNTIME_NVML_LIBRARY,
	RUNTIME_NVML_FACTS,
	RUNTIME_NVML_CUDA, /* 0 or 1 */
	RUNTIME_NVML_UID,
	RUNTIME_NVML_GID,
	RUNTIME_NVML_WORDS
};

/* What such a command line asks. The question borrows its words. False: it is none. */
bool runtime_nvml_parse(int argc, const char *const *argv, struct graft_nvml_question *ret_question, pid_t *ret_parent);

#endif
