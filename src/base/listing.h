/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing: the names in a directory, with as few system calls as the kernel allows. Does not look
 * at the files.
 */
#ifndef GRAFT_BASE_LISTING_H
#define GRAFT_BASE_LISTING_H

#include <stddef.h>

#include "base/arena.h"
#include "base/root.h"

/*
 * Lists the names in an open directory except "." and "..", in byte order. Names and list are in
 * the arena. At most `max` names are read, the first ones that the directory returns; *ret_more,
 * which may be NULL, is set if there are others. Returns 0 or -errno.
 */
int graft_list_names(int fd, size_t max, struct graft_arena *arena, const char ***ret_names, size_t *ret_n,
		     bool *ret_more);
/* The same for a directory below a root. */
int graft_root_list(const struct graft_root *root, const char *path, size_t max, struct graft_arena *arena,
		    const char ***ret_names, size_t *ret_n, bool *ret_more);

#endif
