/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path: paths as words: what a path says, without looking at any file. Never used to find out where a path of an image leads: links are
 * not seen here. That is base/root.h's matter.
 */
#ifndef GRAFT_BASE_PATH_H
#define GRAFT_BASE_PATH_H

#include <stdbool.h>

#include "base/arena.h"

/*
 * `path`, below `base` unless it is absolute, without ".", "..", doubled and trailing slashes: "/a/b". `base` is absolute. NULL: memory, or
 * a path that is not absolute where `base` is NULL.
 */
char *graft_path_clean(const char *base, const char *path, struct graft_arena *arena);

/* The order of paths in a CDI specification (SPEC runtime-and-hook 7.9): by the number of components, then by bytes. As strcmp(). */
int graft_path_compare(const char *a, const char *b);
/* Whether a path is the directory or lies below it. Both are absolute and clean (graft_path_clean()). */
bool graft_path_is_within(const char *path, const char *directory);
/* Whether a component of an absolute path is "." or "..". */
bool graft_path_has_dots(const char *path);
/* Whether one of two such paths is or lies below the other. */
bool graft_path_overlap(const char *a, const char *b);
/* Whether the directories of two paths, what stands before the last slash, are the same words. */
bool graft_path_same_directory(const char *a, const char *b);
/* The directory of a path, in the arena: "/a" of "/a/b", "/" of "/b". NULL: out of memory, or the path has none. */
const char *graft_path_directory(const char *path, struct graft_arena *arena);
/* What follows the last slash. Points into `path`. */
const char *graft_path_name(const char *path);

#endif
