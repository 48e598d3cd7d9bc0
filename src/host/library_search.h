/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_search: one search for libraries of the driver, shared by the two files that do it: libraries.c for those that the catalog knows,
 * library_others.c for those that it does not. Private to src/host.
 */
#ifndef GRAFT_HOST_LIBRARY_SEARCH_H
#define GRAFT_HOST_LIBRARY_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/elf.h"
#include "formats/ldcache.h"
#include "host/catalog.h"
#include "host/survey.h"

#define GRAFT_LIBRARY_SCAN "directory scan" /* source of what no list named */

/* What is known of one catalog row. */
struct slot {
	const struct graft_catalog_library *row;
	size_t prefix_length;
	bool any_version;                   /* it has a version of its own, not the driver's */
	bool wanted;                        /* goes into the inventory when found */
	bool looked_up;                     /* wanted, or the NVML row */
	const char *listed;                 /* file name in the driver's file list */
	const char *path, *soname, *source; /* the choice so far */
	struct slot *next;                  /* of the same bucket */
};

#define GRAFT_LIBRARY_BUCKETS 64

/* A library of the driver's version that no row knows. */
struct other {
	const char *path, *soname, *source;
};

/* One search: all rows for one ABI. */
struct search {
	struct graft_survey *survey;
	struct slot *slots;
	size_t n_slots;
	struct slot *
	    buckets[GRAFT_LIBRARY_BUCKETS]; /* by the prefix's length: each name of a cache is compared with very few */
	uint32_t abi_flags;
	unsigned int bits;
	bool first_letters[256];   /* of what follows "lib" in the prefixes: most cache entries end here */
	bool refused_letters[256]; /* the same of names that are known and left out; none where nobody is told */
	const char *nvml_other;    /* an NVML library that the rules refused: of another version */
	bool beside;               /* looking beside what was found: the cache knows what has a version of its own */
	bool wants_others;
	struct other *others;
	size_t n_others;
};

/* Length of a file name or soname up to and with its first ".so"; 0 when there is none. */
size_t graft_library_prefix_length(const char *name);
/* The last component of a path. */
const char *graft_library_file_name(const char *path);
/* Whether a file name ends with ".<version>". */
bool graft_library_has_version(const char *name, const char *version);
/* What the library's own bytes say. -1 when they cannot be read; memory that fails is remembered. */
int graft_library_read(struct search *search, const char *path, struct graft_elf *ret_elf, struct graft_error *err);
/* Whether a row is about the library, looked up or not. */
bool graft_library_is_known(const struct search *search, const char *name);

/* Whether libraries that no row knows are looked for (SPEC runtime-and-hook 7.5). */
bool graft_library_wants_others(const struct graft_survey *survey);
/* A record of the loader's cache that no row is about: true when it is a library of the driver, which is then remembered. */
bool graft_library_consider_other(struct search *search, const struct graft_ldcache_record *record);
/* Where no cache tells, the names of a directory do. */
void graft_library_scan_others(struct search *search, const char *path);
/* Whether the name that programs are linked with, "libcuda.so", is a link beside the library. */
bool graft_library_has_development_link(struct search *search, const struct graft_library *library);

#endif
