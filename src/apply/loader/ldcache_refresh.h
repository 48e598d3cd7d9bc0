/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_refresh: writes what a reader has computed for the container's dynamic loader
 * (image/loader_cache.h): Graft's own configuration file, a line in the image's configuration,
 * soname links and the cache. For musl images it writes /etc/ld-musl-ARCH.path instead.
 */
#ifndef GRAFT_APPLY_LOADER_LDCACHE_REFRESH_H
#define GRAFT_APPLY_LOADER_LDCACHE_REFRESH_H

#include "apply/namespace/journal.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/image_root.h"
#include "base/log.h"
#include "image/loader_cache.h"
#include "plan/plan.h"

/* Returns what an LDCACHE edit adds for the loader; its lists are borrowed from the edit. */
struct graft_loader_additions graft_ldcache_additions(const struct graft_edit *edit);

/*
 * Applies an LDCACHE edit. `work` is the result of graft_loader_cache_read() for that edit; it is
 * not used for an edit for musl. Files are written next to their destination under an unpredictable
 * name (O_TMPFILE or O_EXCL) and renamed into place; the journal can restore the old ones. Files on
 * another mount than the root are left alone, with a warning.
 */
int graft_ldcache_refresh(const struct graft_image_root *root, const struct graft_edit *edit,
			  const struct graft_loader_work *work, struct graft_journal *journal,
			  const struct graft_log *log, struct graft_error *err);

#endif
