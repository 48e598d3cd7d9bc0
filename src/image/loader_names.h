/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_names: which names a container's loader cache resolves to a file. Unlike loader_cache.h it
 * changes nothing and plans no change: it is for callers that only query.
 */
#ifndef GRAFT_IMAGE_LOADER_NAMES_H
#define GRAFT_IMAGE_LOADER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/image_root.h"

struct graft_loader_names {
	bool exists;          /* /etc/ld.so.cache */
	bool understood;      /* it is well formed */
	const char **sonames; /* those of the names in the question that it has */
	size_t n_sonames;
};

/*
 * Asks about at most 256 names; further ones are not looked for. The answer is in the arena. An
 * absent or damaged cache is an answer. Fails like graft_reader_ask().
 */
int graft_loader_names_ask(const struct graft_image_root *root, const char *const *sonames, size_t n,
			   struct graft_arena *arena, struct graft_loader_names *ret_names, struct graft_error *err);

#endif
