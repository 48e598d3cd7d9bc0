/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache: reads the dynamic loader's cache file, /etc/ld.so.cache (any glibc layout), and writes
 * it (always the new layout). SPEC ld-so-cache 1 to 6. All input is untrusted: offsets, counts and
 * termination are checked.
 */
#ifndef GRAFT_FORMATS_LOADER_LDCACHE_H
#define GRAFT_FORMATS_LOADER_LDCACHE_H

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
	uint32_t os_version; /* copied from existing records, 0 for new ones */
	uint64_t hwcap;      /* 0 for an ordinary library */
};

struct graft_ldcache {
	struct graft_ldcache_record *records; /* in file order */
	size_t n_records;
	const char **hwcaps; /* names of glibc-hwcaps directories, in file order; records contain indices into it */
	size_t n_hwcaps;
	const char *generator; /* extension 0, or NULL */
};

/* A library that a loader should find, with the name that programs use. */
struct graft_ldcache_entry {
	const char *soname;
	const char *path; /* in the container */
	uint32_t abi_flags;
};

/*
 * Parses `length` bytes. Strings point into `bytes`, which must outlive the cache. `name` is for
 * messages.
 *
 * A foreign byte order, bad offsets or unterminated strings fail with GRAFT_FORMAT, "unsupported
 * file format: <name>". So do more than 65,536 records, sonames longer than 255 bytes and paths
 * longer than 4,096 bytes: no real configuration is like that, and a hostile one must not cost
 * time. On failure *ret_cache is unchanged.
 */
int graft_ldcache_read(const void *bytes, size_t length, const char *name, struct graft_arena *arena,
		       struct graft_ldcache *ret_cache, struct graft_error *err);

/* Returns whether ldconfig takes a file with that name for a library (SPEC ld-so-cache 8). */
bool graft_ldcache_is_library_name(const char *name);

/*
 * Returns whether a soname can be the name of a link next to its library: a single path component.
 */
bool graft_ldcache_is_soname(const char *soname);

/*
 * Development links, "libx.so" to "libx.so.1", are in the cache under their own name (SPEC
 * ld-so-cache 8). Return whether a name, or the end of a path, may be such a link; and whether it
 * is the link of a library with that soname.
 */
bool graft_ldcache_is_development_name(const char *name);
bool graft_ldcache_is_development_link(const char *name, const char *soname);

/*
 * Compares sonames like the loader (SPEC ld-so-cache 4). Returns < 0, 0 or > 0. Runs of digits are
 * compared as numbers, modulo 2^32 as in the loader.
 */
int graft_ldcache_compare(const char *a, const char *b);

/*
 * Sorts the records (stably, in the order needed by the loader's binary search; equal sonames keep
 * their order except where section 4 specifies another) and appends the file's bytes. Returns 0, or
 * -1 with GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_ldcache_write(struct graft_ldcache *cache, struct graft_buffer *out, struct graft_error *err);

#endif
