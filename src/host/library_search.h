/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_search: the state of one search for libraries of the driver, shared by libraries.c, for
 * libraries that the catalog knows, and library_others.c, for those that it does not. Private to
 * src/host.
 */
#ifndef GRAFT_HOST_LIBRARY_SEARCH_H
#define GRAFT_HOST_LIBRARY_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"
#include "host/catalog.h"
#include "host/survey.h"

#define GRAFT_LIBRARY_SCAN "directory scan" /* source of libraries that no list names */

/* What is known about one catalog row. */
struct slot {
	const struct graft_catalog_library *row;
	size_t prefix_length;
	bool any_version;                   /* has its own version rather than the driver's */
	bool wanted;                        /* goes into the inventory if found */
	bool looked_up;                     /* wanted, or the NVML row */
	const char *listed;                 /* file name in the driver's file list */
	const char *path, *soname, *source; /* the best candidate so far */
	struct slot *next;                  /* in the same bucket */
};

#define GRAFT_LIBRARY_BUCKETS 64

/* A library of the driver's version that no row knows. */
struct other {
	const char *path, *soname, *source;
};

/* One search: all rows, for one ABI. */
struct search {
	struct graft_survey *survey;
	struct slot *slots;
	size_t n_slots;
	struct slot *nvml; /* the row of the NVML library: the first of the catalog */
	/* By length of the prefix, so that each name in a cache is compared with very few */
	struct slot *buckets[GRAFT_LIBRARY_BUCKETS];
	uint32_t abi_flags;
	unsigned int bits;
	bool first_letters[256]; /* what follows "lib" in the prefixes: rejects most cache entries */
	/* Likewise for names that are known and left out; all false where those are not reported */
	bool refused_letters[256];
	const char *nvml_other; /* an NVML library that the rules rejected: one of another version */
	/*
	 * Searching next to libraries found before; skips rows with their own versions, which the
	 * cache knows
	 */
	bool beside;
	bool wants_others;
	struct other *others;
	size_t n_others;
};

/* The length of a file name or soname up to and including its first ".so"; 0 if it has none. */
size_t graft_library_prefix_length(const char *name);
/* Returns whether a file name ends in ".<version>". */
bool graft_library_has_version(const char *name, const char *version);
/*
 * Reads a library's own bytes. Returns -1 if it cannot be read as a library; if memory or
 * descriptors run out, the survey records it.
 */
int graft_library_read(struct search *search, const char *path, struct graft_elf *ret_elf, struct graft_error *err);
/* Returns whether a row describes the library, looked up or not. */
bool graft_library_is_known(const struct search *search, const char *name);

/* Returns whether libraries that no row knows are searched for (SPEC runtime-and-hook 7.5). */
bool graft_library_wants_others(const struct graft_survey *survey);
/*
 * Considers a record of the loader's cache that no row describes. Returns true if it is a library
 * of the driver, which is then added to the search.
 */
bool graft_library_consider_other(struct search *search, const struct graft_ldcache_record *record);
/* Adds the unknown libraries of the driver in a directory, for use where no cache lists them. */
void graft_library_scan_others(struct search *search, const char *path);
/*
 * Returns whether the development name of the library ("libcuda.so") is a link in the same
 * directory.
 */
bool graft_library_has_development_link(struct search *search, const struct graft_library *library);

#endif
