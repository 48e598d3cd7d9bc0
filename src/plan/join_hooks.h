/* SPDX-License-Identifier: Apache-2.0 */
/* join_hooks: several hooks of nvidia-cdi-hook as one process (docs/decisions/0016-hooks-in-a-row.md). */
#ifndef GRAFT_PLAN_JOIN_HOOKS_H
#define GRAFT_PLAN_JOIN_HOOKS_H

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi.h"

/* The hook that runs others, and the word between two of them: PROGRAM sequence [--rootfs DIR] HOOK [OPTION...] --then HOOK [OPTION...]. */
#define GRAFT_SEQUENCE_HOOK "sequence"
#define GRAFT_SEQUENCE_THEN "--then"

/*
 * Makes one hook of each row of createContainer hooks in `edits` that are calls of `program`, a path, with hooks that this version has, and that agree in
 * their environments. Hooks of other stages may stand between them, others of their own stage may not; the order stays. What has a timeout, or options
 * whose meaning depends on being alone (--container-spec), is left as it is. `root` is the container's root, an absolute path that each row is told, and
 * then a hook alone is a row as well; NULL = they read the OCI state. edits->hooks is replaced by a list in the arena. -1: GRAFT_NO_MEMORY.
 */
int graft_join_hooks(const char *program, const char *root, struct graft_arena *arena, struct graft_cdi_edits *edits,
		     struct graft_error *err);

#endif
