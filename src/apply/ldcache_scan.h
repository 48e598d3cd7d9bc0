/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_scan: what ldconfig would find in the directories of a root: libraries, their sonames, one winner per directory and soname
 * (SPEC ld-so-cache.md 8). Nothing is executed; of each file only ELF headers are read.
 */
#ifndef GRAFT_APPLY_LDCACHE_SCAN_H
#define GRAFT_APPLY_LDCACHE_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apply/journal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "formats/ldcache.h"

struct graft_directory_id {
	dev_t dev;
	ino_t ino;
};

struct graft_ldcache_scan {
	const struct graft_root *root;
	struct graft_arena *arena;
	struct graft_journal *journal; /* NULL: look only; else soname links are made and dangling ones removed */
	const struct graft_log *log;
	const struct graft_ldcache
	    *old;   /* the image's cache, believed where names have not changed (ldcache_recall.h); NULL: nothing is */
	bool early; /* libraries are still to be mounted: no link that is there is changed or removed */
	int64_t deadline_ms; /* of graft_clock_ms(); then GRAFT_TOO_BIG */

	struct graft_ldcache found; /* records in scan order; hwcaps records hold indices into found.hwcaps */
	struct graft_directory_id *seen;
	size_t n_seen;
};

/*
 * Scans a directory and the glibc-hwcaps directories below it. One that was scanned under another name, or is not there, is nothing. -1:
 * GRAFT_TOO_BIG (time, or more than 65,536 libraries), GRAFT_NO_MEMORY.
 */
int graft_ldcache_scan_directory(struct graft_ldcache_scan *scan, const char *path, struct graft_error *err);

/* Puts the hwcaps names in the order in which the file must have them. -1: GRAFT_NO_MEMORY. */
int graft_ldcache_scan_finish(struct graft_ldcache_scan *scan, struct graft_error *err);

#endif
