/* SPDX-License-Identifier: Apache-2.0 */
/* loader_search: how an image's loader comes to search folders that it would not: the part of an LDCACHE edit that follows from its folders. Pure. */
#ifndef GRAFT_PLAN_LOADER_SEARCH_H
#define GRAFT_PLAN_LOADER_SEARCH_H

#include <stdbool.h>

#include "base/arena.h"
#include "host/image.h"
#include "plan/plan.h"

/* Adds a folder unless it is there, by whatever number of slashes at its end. `folder` is not copied. False: out of memory. */
bool graft_loader_add_folder(struct graft_arena *arena, struct graft_edit *edit, const char *folder);
/*
 * Completes an LDCACHE edit whose folders and entries are set: for glibc, which of the folders are missing in the image's configuration; for musl, the text of
 * its path file (entries mean nothing there and are taken out). Failures are the arena's.
 */
void graft_loader_search(struct graft_arena *arena, const struct graft_image *image, struct graft_edit *edit);
bool graft_loader_is_musl(const struct graft_image *image);
/* Whether the folder was missing when the root was used before, and added to what the loader searches. */
bool graft_loader_was_added(const struct graft_image *image, const char *folder);

#endif
