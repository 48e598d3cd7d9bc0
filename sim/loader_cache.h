/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cache: writes /etc/ld.so.cache for a simulated host. On purpose not src/formats/ldcache.c: the simulator's cache is that reader's
 * test input, and two writers of one format check each other. ldconfig -p is the oracle of both.
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

/* Sorts the entries and appends the file's bytes. Failures are the buffer's. */
void sim_cache_write(struct sim_cache_entry *entries, size_t n, struct graft_buffer *out);

/*
 * The file of a simulated driver in front of the machine's own: records of `host` are kept except those of the same soname and ABI, and
 * those for particular processors (glibc-hwcaps), which loaders can do without. -1 when `host` is of a layout that is not understood.
 */
int sim_cache_merge(const char *driver, size_t n_driver, const char *host, size_t n_host, struct graft_arena *arena,
		    struct graft_buffer *out);

#endif
