/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_refresh: makes a container's dynamic loader find the injected libraries, without running anything: merges
 * entries into the image's /etc/ld.so.cache, or builds the whole cache when it is missing, damaged or older than a
 * directory it describes (SPEC ld-so-cache.md 7, 8). For musl images it writes /etc/ld-musl-ARCH.path instead.
 */
#ifndef GRAFT_APPLY_LDCACHE_REFRESH_H
#define GRAFT_APPLY_LDCACHE_REFRESH_H

#include <stdbool.h>
#include <time.h>

#include "apply/journal.h"
#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "plan/plan.h"

/*
 * State of the image's cache before anything is changed below the root (mount points change directories' times, so this comes first):
 * GRAFT_LDCACHE_MERGE: present, well formed and not older than its directories. */
enum graft_ldcache_state {
	GRAFT_LDCACHE_MERGE,
	GRAFT_LDCACHE_REBUILD,
	GRAFT_LDCACHE_REBUILD_EARLY, /* never found, only asked for: what the plan mounts is not there yet */
};
enum graft_ldcache_state graft_ldcache_state(const struct graft_root *root, const struct graft_log *log);

/*
 * Applies an LDCACHE edit. Files are written beside their place under a name nobody can guess (O_TMPFILE or O_EXCL) and renamed; the journal
 * can put the old ones back. Owner of new files: uid/gid.
 */
int graft_ldcache_refresh(const struct graft_root *root, const struct graft_edit *edit, enum graft_ldcache_state state,
			  struct graft_journal *journal, const struct graft_log *log, struct graft_error *err);

#endif
