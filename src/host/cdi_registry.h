/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_registry: the CDI specs of the host's directories (SPEC ctk-and-cdi 5.5), and what a list of device names means by them. */
#ifndef GRAFT_HOST_CDI_REGISTRY_H
#define GRAFT_HOST_CDI_REGISTRY_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/cdi.h"

struct graft_cdi_problem {
	const char *file; /* spec that was skipped, or whose device conflicts */
	const char *why;
};

struct graft_cdi_registry {
	struct graft_cdi_spec *specs; /* in ascending priority, then by name */
	size_t *priorities;           /* of each spec: index of its directory */
	size_t n_specs;
	struct graft_cdi_problem *problems;
	size_t n_problems;
};

/* Reads the directories, ascending priority. A missing directory is fine; an invalid file is a problem, not a failure. -1: GRAFT_IO, GRAFT_NO_MEMORY. */
int graft_cdi_registry_read(const char *const *directories, size_t n_directories, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_cdi_registry *ret_registry,
			    struct graft_error *err);
/*
 * The edits for qualified names, in order: each spec's common edits the first time it is met, then the device's (SPEC runtime-and-hook 8). Pure.
 * -1: GRAFT_UNKNOWN_DEVICE "unresolvable CDI devices a, b"; the problems that explain it are in the message's hint or the log.
 */
int graft_cdi_registry_resolve(const struct graft_cdi_registry *registry, const char *const *names, size_t n_names,
			       struct graft_arena *arena, struct graft_cdi_edits *ret_edits, struct graft_error *err);

#endif
