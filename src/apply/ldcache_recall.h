/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_recall: what an old cache still says of a directory's names, so that their files need not be read again
 * (docs/decisions/0015-believe-the-old-cache.md). Looks at names and at what links say, opens nothing.
 */
#ifndef GRAFT_APPLY_LDCACHE_RECALL_H
#define GRAFT_APPLY_LDCACHE_RECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "formats/ldcache.h"

/* A name of a directory that could be a library's. */
struct graft_ldcache_name {
	const char *name;
	size_t place; /* in the directory */
	bool is_link; /* else a regular file */
	/* Answers: */
	const char *soname; /* what the file, or the file that the link leads to, answers to; NULL: it has to be read */
	uint32_t flags;     /* its ABI (ld-so-cache.md 5); only with a soname */
};

/* By name, as the functions below need them. */
void graft_ldcache_sort_names(struct graft_ldcache_name *names, size_t n);
/* In sorted names; NULL when it is not among them. */
const struct graft_ldcache_name *graft_ldcache_find_name(const struct graft_ldcache_name *names, size_t n,
							 const char *name);

/*
 * Fills in the answers that `cache` gives for the directory of descriptor `fd` (readable), which its records call `path`. There is an answer
 *	- for a file whose own name is recorded;
 *	- for a link whose own name is recorded and that leads to a file of `names`, over links that are recorded as well or none;
 *	- for a file that exactly one such link leads to, development links ("libx.so") aside. The link need not be looked at again.
 * `names` are sorted. Strings are borrowed from them and from `cache`. 0, or -1 when the arena is exhausted. At `deadline_ms` (graft_clock_ms()) it stops, with fewer answers.
 */
int graft_ldcache_recall(const struct graft_ldcache *cache, int fd, const char *path, struct graft_ldcache_name *names,
			 size_t n, int64_t deadline_ms, struct graft_arena *arena);

#endif
