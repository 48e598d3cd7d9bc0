/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_search: makes an image's loader search more directories: the part of an LDCACHE edit that
 * follows from its directories. Pure.
 */
#ifndef GRAFT_PLAN_LOADER_SEARCH_H
#define GRAFT_PLAN_LOADER_SEARCH_H

#include <stdbool.h>

#include "base/arena.h"
#include "image/inspect.h"
#include "plan/plan.h"

/*
 * Adds a directory unless it is already there, ignoring trailing slashes. `folder` is not copied.
 * Returns false if memory is exhausted.
 */
bool graft_loader_add_folder(struct graft_arena *arena, struct graft_edit *edit, const char *folder);
/*
 * Completes an LDCACHE edit that has its directories and entries: for glibc, sets which of the
 * directories are missing in the image's configuration; for musl, sets the text of its path file
 * (and removes the entries, which have no meaning there). If memory is exhausted, the arena records
 * it.
 */
void graft_loader_search(struct graft_arena *arena, const struct graft_image *image, struct graft_edit *edit);
/* Returns whether the image's loader is musl's and the path of its search path file is known. */
bool graft_loader_is_musl(const struct graft_image *image);
/*
 * Returns whether the directory was missing when the root was used before, and was added to what
 * the loader searches.
 */
bool graft_loader_was_added(const struct graft_image *image, const char *folder);

#endif
