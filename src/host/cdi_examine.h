/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_examine: everything that is wrong with spec files and directories of them, for the person who writes or mends one. */
#ifndef GRAFT_HOST_CDI_EXAMINE_H
#define GRAFT_HOST_CDI_EXAMINE_H

#include "host/cdi_registry.h"

/* A file that was looked at. */
struct graft_cdi_examined {
	const char *path;
	struct graft_cdi_faults faults; /* by place */
	bool valid;                     /* readers take it: what it may have is harmless */
};

/*
 * Looks at files and directories (the specs in them). Later directories override earlier ones, as those of an engine do; files that are named stand for
 * themselves. Faults of the directories among each other belong to the files: a device that two specs of one directory define, which nobody can use then; harmless:
 * devices that a later directory overrides, a named file whose ending makes readers pass it over.
 *
 * A file that cannot be read has that as its fault. Directories that are not there are left out if `may_be_missing`. -1: a directory that cannot be
 * read; GRAFT_NO_MEMORY.
 */
int graft_cdi_examine(const char *const *paths, size_t n_paths, bool may_be_missing, struct graft_arena *arena,
		      struct graft_cdi_examined **ret_files, size_t *ret_n, struct graft_error *err);

#endif
