/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit: applies one edit of a plan inside the container's mount namespace. Private to to_namespace.
 */
#ifndef GRAFT_APPLY_NAMESPACE_EDIT_H
#define GRAFT_APPLY_NAMESPACE_EDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "apply/cgroup/cgroup.h"
#include "apply/loader/ldcache_refresh.h"
#include "apply/namespace/identity.h"
#include "apply/namespace/join.h"
#include "apply/namespace/journal.h"
#include "apply/namespace/mount.h"
#include "apply/namespace/place.h"
#include "apply/namespace/source.h"
#include "apply/namespace/target.h"
#include "base/error.h"
#include "base/log.h"
#include "plan/plan.h"

/* The state of applying one plan; set up and torn down by to_namespace.c. */
struct graft_apply {
	const struct graft_plan *plan;
	bool is_shortened; /* not the caller's plan: some edits had to be left out */
	const struct graft_target *target;
	struct graft_image_root root; /* the target's, borrowed, plus the mounts that we make in it */
	const struct graft_log *log;
	struct graft_journal *journal; /* owned */
	struct graft_mounter mounter;
	struct graft_join join;
	struct graft_identity identity;
	uid_t owner_uid; /* owner of new files, in the ids of this process */
	gid_t owner_gid;
	struct graft_place place;
	struct graft_source *sources; /* owned; one per edit */
	struct graft_image_root
	    namespace_root;              /* "/" of the joined namespace, for late sources; closed if there are none */
	bool late;                       /* sources are copied after joining */
	struct graft_loader_work loader; /* what to write for an LDCACHE edit */
	struct graft_arena *arena;       /* owned; holds `loader` */
	struct graft_cgroup *cgroup;     /* borrowed; set once rules were added */
};

/*
 * Applies plan->edits[index]. Ignores CGROUP, LDCACHE and ENV edits. Returns -1 with the error set;
 * the journal records what was done until then.
 */
int graft_apply_edit(struct graft_apply *apply, size_t index, struct graft_error *err);
/*
 * Called when all edits are made: fails with GRAFT_UNSAFE if what the low-level runtime makes after
 * its hooks, the working directory and the console, would be made in a directory of the host that
 * the plan mounts, or if that cannot be determined. `cwd`: "" if not known. `hooks_follow`: makes
 * the working directory, and also fails if a link leads there.
 */
int graft_apply_check_later(struct graft_apply *apply, const char *cwd, bool hooks_follow, struct graft_error *err);
/*
 * Returns whether the container can do without an edit that failed with `err`. If so, warns, undoes
 * what the journal has recorded after its first `length` entries, and clears the error. Returns
 * false if the edit cannot be undone; the error then says so.
 */
bool graft_apply_does_without(struct graft_apply *apply, const struct graft_edit *edit, size_t length,
			      struct graft_error *err);

#endif
