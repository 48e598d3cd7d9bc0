/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path: paths as strings, without looking at any file. Links are not resolved, so never use these
 * functions to find out where a path of an image points to. base/beneath.h does that.
 */
#ifndef GRAFT_BASE_PATH_H
#define GRAFT_BASE_PATH_H

#include <stdbool.h>

#include "base/arena.h"

/*
 * Returns `path`, taken relative to `base` unless it is absolute, without ".", "..", doubled and
 * trailing slashes: "/a/b". `base` is absolute. Returns NULL if out of memory, or if `path` is
 * relative and `base` is NULL.
 */
char *graft_path_clean(const char *base, const char *path, struct graft_arena *arena);

/*
 * Compares paths as CDI specifications order them (SPEC runtime-and-hook 7.9): by the number of
 * components, then by bytes. Returns like strcmp().
 */
int graft_path_compare(const char *a, const char *b);
/*
 * Returns whether a path is the directory or below it. Both are absolute and clean
 * (graft_path_clean()).
 */
bool graft_path_is_within(const char *path, const char *directory);
/*
 * Returns whether `name` can be a directory entry: no slash, neither "." nor "..", not empty, at
 * most NAME_MAX bytes.
 */
bool graft_path_is_component(const char *name);
/* Returns whether a component of an absolute path is "." or "..". */
bool graft_path_has_dots(const char *path);
/* Returns whether a component of an absolute path is "..". */
bool graft_path_has_parents(const char *path);
/* Returns whether one of two such paths is the other or below it. */
bool graft_path_overlap(const char *a, const char *b);
/*
 * Returns whether the path overlaps one of `paths`, which need not be clean. Also true if there is
 * no memory to find out.
 */
bool graft_path_overlaps_one(const char *path, const char *const *paths, size_t n, struct graft_arena *arena);
/*
 * Returns whether a clean path is, contains or is below /dev, /proc or /sys, which a container's
 * low-level runtime populates.
 */
bool graft_path_is_system(const char *path);
/* Returns whether two paths are the same up to their last slash. */
bool graft_path_same_directory(const char *a, const char *b);
/*
 * Returns the directory part of a path, in the arena: "/a" for "/a/b", "/" for "/b". NULL if out of
 * memory or if there is none.
 */
const char *graft_path_directory(const char *path, struct graft_arena *arena);
/* Returns what follows the last slash. Points into `path`. */
const char *graft_path_name(const char *path);

#endif
