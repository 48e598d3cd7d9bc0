/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: the paths below a root that fit a pattern of the shell (* ? [] in each component). Reads directories, follows links below the root only. */
#ifndef GRAFT_HOST_PATTERN_H
#define GRAFT_HOST_PATTERN_H

#include <stddef.h>

#include "base/arena.h"
#include "base/root.h"

/*
 * Appends the paths, absolute below the root, in the order of their names, links not resolved. A path without pattern characters is looked up like any
 * other. What cannot be read holds nothing. Returns the number appended, or -ENOMEM, -E2BIG (more than 4096 directories looked into, or 16384 paths).
 */
int graft_pattern_expand(const struct graft_root *root, const char *pattern, struct graft_arena *arena,
			 const char ***paths, size_t *n_paths);

#endif
