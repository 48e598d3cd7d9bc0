/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache: the dynamic loader's cache file, /etc/ld.so.cache: reading (any glibc layout), editing, writing
 * (always the new layout). SPEC ld-so-cache.md. All input is untrusted: offsets, counts and termination are checked.
 */
#ifndef GRAFT_FORMATS_LDCACHE_H
#define GRAFT_FORMATS_LDCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

struct graft_ldcache_record {
	const char *soname;
	const char *path;
	uint32_t flags;      /* GRAFT_ABI_FLAGS_*; bit 0 of the format byte set for ELF */
	uint32_t os_version; /* copied for records kept, 0 for new ones */
	uint64_t hwcap;      /* 0 for an ordinary library */
};

struct graft_ldcache {
	struct graft_ldcache_record *records; /* file order */
	size_t n_records;
	const char **hwcaps; /* names of glibc-hwcaps directories, in file order: records hold indices into it */
	size_t n_hwcaps;
	const char *generator; /* extension 0, or NULL */
};

/*
 * Parses `length` bytes. Strings point into `bytes`, which must outlive the cache. Foreign byte order, bad offsets or unterminated
 * strings: -1 with GRAFT_FORMAT, message "unsupported file format: <name>". So are more than 65,536 records, sonames longer than 255 bytes and
 * paths longer than 4,096: no loader configuration is like that, and a hostile one must not cost time. On failure *ret_cache is untouched.
 */
int graft_ldcache_read(const void *bytes, size_t length, const char *name, struct graft_arena *arena,
		       struct graft_ldcache *ret_cache, struct graft_error *err);

/* Whether ldconfig takes a file of that name for a library (ld-so-cache.md 8). */
bool graft_ldcache_is_library_name(const char *name);

/* Whether a soname may become the name of a link beside its library: one component. */
bool graft_ldcache_is_soname(const char *soname);

/*
 * Links for development, "libx.so" to "libx.so.1", are in the cache by their own name (ld-so-cache.md 8). Whether a name, or the end of a path, may be one's; and whether it is one
 * of a library with that soname.
 */
bool graft_ldcache_is_development_name(const char *name);
bool graft_ldcache_is_development_link(const char *name, const char *soname);

/* The loader's comparison of sonames (ld-so-cache.md 4): < 0, 0, > 0. Digit runs count as numbers, modulo 2^32 as in the loader. */
int graft_ldcache_compare(const char *a, const char *b);

/*
 * Sorts (stably, in the order the loader's binary search needs; equal keys keep their order except where section 4 says otherwise) and
 * appends the file's bytes. Returns -1 with GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_ldcache_write(struct graft_ldcache *cache, struct graft_buffer *out, struct graft_error *err);

#endif
