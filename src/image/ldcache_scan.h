/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_scan: what ldconfig would find in the directories of a root: libraries, their sonames,
 * one winner per directory and soname (SPEC ld-so-cache 8). Nothing is executed; only the ELF
 * headers of each file are read. Nothing is changed: the links that ldconfig would make or remove
 * are listed.
 */
#ifndef GRAFT_IMAGE_LDCACHE_SCAN_H
#define GRAFT_IMAGE_LDCACHE_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/image_root.h"
#include "base/log.h"
#include "formats/loader/ldcache.h"

struct graft_directory_id {
	dev_t dev;
	ino_t ino;
};

#define GRAFT_LOADER_LINKS_MAX 16384u /* per scan: more than any image has; further links stay as they are */

/* The link of a soname, to be made, corrected or removed. */
struct graft_loader_link {
	const char *directory; /* in the root, absolute, as spelled in the loader's configuration */
	const char *name;      /* a single component */
	const char *text;      /* the new target, a single component; NULL: remove the link, which is dangling */
	const char *old_text;  /* the current target; NULL: nothing of that name exists */
};

struct graft_ldcache_scan {
	const struct graft_image_root *root;
	struct graft_arena *arena;
	bool want_links; /* list links; otherwise only look for libraries */
	const struct graft_log *log;
	/*
	 * The image's cache, trusted where names have not changed (ldcache_recall.h). NULL: no
	 * cache is trusted.
	 */
	const struct graft_ldcache *old;
	bool early; /* libraries are still to be mounted: no existing link is changed or removed */

	struct graft_ldcache found; /* records in scan order; hwcaps records contain indices into found.hwcaps */
	struct graft_loader_link *links;
	size_t n_links;
	struct graft_directory_id *seen;
	size_t n_seen;
};

/*
 * Scans a directory and the glibc-hwcaps directories below it. Does nothing if it does not exist,
 * or was scanned under another name. Returns 0, or -1 with GRAFT_TOO_BIG (the budget is spent, or
 * more than 65,536 libraries) or GRAFT_NO_MEMORY.
 */
int graft_ldcache_scan_directory(struct graft_ldcache_scan *scan, const char *path, struct graft_error *err);

/* Sorts the hwcaps names as the file requires. Returns 0, or -1 with GRAFT_NO_MEMORY. */
int graft_ldcache_scan_finish(struct graft_ldcache_scan *scan, struct graft_error *err);

#endif
