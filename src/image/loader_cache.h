/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cache: makes a container's dynamic loader find injected libraries, without executing
 * anything: a new /etc/ld.so.cache made from the image's own and the new entries, or from all of
 * its libraries if the image's cache is missing, damaged or older than a directory that it
 * describes (SPEC ld-so-cache 7, 8); the loader's configuration; and soname links. An unprivileged
 * process determines the content (image/reader.h); apply/loader/ldcache_refresh.h writes it.
 */
#ifndef GRAFT_IMAGE_LOADER_CACHE_H
#define GRAFT_IMAGE_LOADER_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/image_root.h"
#include "base/log.h"
#include "formats/loader/ldcache.h"
#include "image/ldcache_scan.h"

#define GRAFT_LDCACHE_PATH  "/etc/ld.so.cache"
#define GRAFT_LDSOCONF_PATH "/etc/ld.so.conf"

/* What the loader should find besides the image's own libraries. */
struct graft_loader_additions {
	const struct graft_ldcache_entry *entries; /* in the order in which they are found */
	size_t n_entries;
	const char *const *folders; /* directories of the entries */
	size_t n_folders;
	const char *const *missing_folders; /* those that the image's own configuration does not search */
	size_t n_missing_folders;
};

/* What is known about the image's cache. */
enum graft_ldcache_state {
	GRAFT_LDCACHE_LOOK,    /* nothing: the reader has to check */
	GRAFT_LDCACHE_MERGE,   /* it exists, is well formed and not older than its directories */
	GRAFT_LDCACHE_REBUILD, /* all libraries must be read */
};

/* What to write, in this order. NULL: the file stays as it is. */
struct graft_loader_work {
	bool own_conf;    /* Graft's own configuration file, with the text of graft_loader_own_conf() */
	const char *conf; /* /etc/ld.so.conf */
	size_t conf_length;
	struct graft_loader_link *links;
	size_t n_links;
	const char *cache; /* /etc/ld.so.cache */
	size_t cache_length;
};

/*
 * Determines what to write; changes nothing. `early`: not everything has been injected yet, so no
 * existing link may be changed or removed. Creating mount points changes the times of directories,
 * which show whether the cache is up to date; therefore call it with GRAFT_LDCACHE_LOOK before
 * that. Fails like graft_reader_ask(), and with GRAFT_TOO_BIG also for more libraries or
 * directories than any image has.
 */
int graft_loader_cache_read(const struct graft_image_root *root, const struct graft_loader_additions *additions,
			    enum graft_ldcache_state state, bool early, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_loader_work *ret_work, struct graft_error *err);

/*
 * Returns the content of Graft's own configuration file (GRAFT_LDSOCONF_OWN), or NULL if out of
 * memory.
 */
const char *graft_loader_own_conf(const struct graft_loader_additions *additions, struct graft_arena *arena);

/*
 * Returns the state of the image's cache, MERGE or REBUILD, for callers that change the root before
 * they call graft_loader_cache_read(). REBUILD if it cannot be determined.
 */
enum graft_ldcache_state graft_ldcache_state(const struct graft_image_root *root, const struct graft_log *log);

#endif
