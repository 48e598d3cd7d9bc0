/* SPDX-License-Identifier: Apache-2.0 */
/* listing: the names in a directory, with as few system calls as the kernel allows. Looks at no file. */
#ifndef GRAFT_BASE_LISTING_H
#define GRAFT_BASE_LISTING_H

#include <stddef.h>

#include "base/arena.h"
#include "base/root.h"

/*
 * The names in an open directory but "." and "..", in byte order; they and the list are in the arena. 0, or -errno. At most `max` names are read, whichever the
 * directory has first; *ret_more (may be NULL) tells whether there are others.
 */
int graft_list_names(int fd, size_t max, struct graft_arena *arena, const char ***ret_names, size_t *ret_n,
		     bool *ret_more);
/* The same for a directory below a root. */
int graft_root_list(const struct graft_root *root, const char *path, size_t max, struct graft_arena *arena,
		    const char ***ret_names, size_t *ret_n, bool *ret_more);

#endif
