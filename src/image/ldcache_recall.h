/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_recall: what an old cache still shows about the names in a directory, so that their files
 * need not be read again (docs/decisions/0015-believe-the-old-cache.md). Looks at names and at the
 * targets of links, opens nothing.
 */
#ifndef GRAFT_IMAGE_LDCACHE_RECALL_H
#define GRAFT_IMAGE_LDCACHE_RECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/budget.h"
#include "formats/loader/ldcache.h"

/* A name in a directory that may be a library. */
struct graft_ldcache_name {
	const char *name;
	size_t place; /* its position in the directory */
	bool is_link; /* otherwise a regular file */
	/* Answers: */
	const char *soname; /* of the file, or of the file that the link resolves to; NULL: the file must be read */
	uint32_t flags;     /* its ABI (SPEC ld-so-cache 5); only set with a soname */
};

/* Sorts by name, as the functions below require. */
void graft_ldcache_sort_names(struct graft_ldcache_name *names, size_t n);
/* Finds a name in a sorted list. Returns NULL if it is missing. */
const struct graft_ldcache_name *graft_ldcache_find_name(const struct graft_ldcache_name *names, size_t n,
							 const char *name);

/*
 * Fills in the answers that `cache` gives for the directory open as `fd` (readable), which its
 * records call `path`. There is an answer
 *	- for a file whose own name is recorded;
 *	- for a link whose own name is recorded and which resolves to a file in `names`, directly
 *	  or through links that are recorded as well;
 *	- for a file to which exactly one such link resolves, not counting development links
 *	  ("libx.so"). The link need not be checked again.
 *
 * `names` must be sorted. Strings are borrowed from them and from `cache`. Returns 0, or -1 if the
 * arena is exhausted. Stops when the budget is spent, with fewer answers.
 */
int graft_ldcache_recall(const struct graft_ldcache *cache, int fd, const char *path, struct graft_ldcache_name *names,
			 size_t n, struct graft_budget *budget, struct graft_arena *arena);

#endif
