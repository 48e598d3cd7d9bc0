/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cache: writes /etc/ld.so.cache for a simulated host. Deliberately independent of
 * src/formats/loader/ldcache.c: the simulator's cache is test input for that reader, and two
 * writers of one format check each other. ldconfig -p is the oracle for both.
 */
#ifndef GRAFT_SIM_LOADER_CACHE_H
#define GRAFT_SIM_LOADER_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"

struct sim_cache_entry {
	const char *soname;
	const char *path;
	uint32_t flags;
};

/*
 * Sorts the entries and appends the bytes of the file. If out of memory, the buffer's failed flag
 * is set.
 */
void sim_cache_write(struct sim_cache_entry *entries, size_t n, struct graft_buffer *out);

/*
 * Merges the caches of a simulated driver and of the machine. Records of `host` are kept except
 * those whose soname and ABI occur in `driver`, and those for particular processors (glibc-hwcaps),
 * which loaders can do without. Returns 0, or -1 if a cache has an unknown layout or memory runs
 * out.
 */
int sim_cache_merge(const char *driver, size_t n_driver, const char *host, size_t n_host, struct graft_arena *arena,
		    struct graft_buffer *out);

#endif
