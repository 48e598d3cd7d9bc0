/* SPDX-License-Identifier: Apache-2.0 */
/* edit: applies one edit of a plan inside the container's mount namespace. Private to to_namespace. */
#ifndef GRAFT_APPLY_EDIT_H
#define GRAFT_APPLY_EDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "apply/cgroup.h"
#include "apply/identity.h"
#include "apply/join.h"
#include "apply/journal.h"
#include "apply/ldcache_refresh.h"
#include "apply/mount.h"
#include "apply/place.h"
#include "apply/source.h"
#include "apply/target.h"
#include "base/error.h"
#include "base/log.h"
#include "plan/plan.h"

/* Everything that applying one plan needs; made and torn down by to_namespace.c. */
struct graft_apply {
	const struct graft_plan *plan;
	const struct graft_target *target;
	const struct graft_log *log;
	struct graft_journal *journal; /* owned */
	struct graft_mounter mounter;
	struct graft_join join;
	struct graft_identity identity;
	uid_t owner_uid; /* what new files belong to, as this process numbers ids */
	gid_t owner_gid;
	struct graft_place place;
	struct graft_source *sources;     /* owned; one per edit */
	struct graft_root namespace_root; /* "/" of the joined namespace, for late sources; closed if there are none */
	bool late;                        /* sources are copied after joining */
	enum graft_ldcache_state ldcache_state;
	struct graft_cgroup *cgroup; /* borrowed; set once rules were added */
};

/* Applies plan->edits[index]. CGROUP, LDCACHE and ENV edits are nothing here. -1 with the error; the journal knows what was done. */
int graft_apply_edit(struct graft_apply *apply, size_t index, struct graft_error *err);

#endif
