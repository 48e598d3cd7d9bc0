/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_kmods: --load-kmods (SPEC libnvidia-container 5): loads the kernel modules and makes the
 * host's device nodes and /dev/char links. The only part of the stack that runs a program
 * (modprobe), before any container is touched. Failures are logged, never returned.
 */
#ifndef GRAFT_APPLY_LOAD_KMODS_H
#define GRAFT_APPLY_LOAD_KMODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

struct graft_kmods_options {
	const char *root; /* driver root */
	const uint32_t *imex_channels;
	size_t n_imex_channels;
	bool no_create_imex_channels;
	bool wsl; /* skip with a warning */
	const struct graft_log *log;
};

/* Loads modules and makes nodes according to the options, as far as possible. */
void graft_load_kmods(const struct graft_kmods_options *options);

#endif
