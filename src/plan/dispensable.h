/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispensable: which files of the driver a container can do without, according to the catalogue.
 * These are the files that the existing command line does not give (SPEC libnvidia-container 6.2,
 * 6.3, 6.6): descriptions for other loaders, programs and platforms that few use. If the container
 * has no place for one of them, it starts without it. Everything else is what the container was
 * promised.
 */
#ifndef GRAFT_PLAN_DISPENSABLE_H
#define GRAFT_PLAN_DISPENSABLE_H

#include <stdbool.h>

/* Whether the file at `path`, which may be of the host or of a container, is dispensable. */
bool graft_is_dispensable(const char *path);

#endif
