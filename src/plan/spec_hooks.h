/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec_hooks: makes safe the hooks in CDI specifications that others wrote. Old generators use
 * `nvidia-ctk hook NAME`, and give no environment: a low-level runtime then passes on its own,
 * which an image can influence (CVE-2025-23266). Pure.
 */
#ifndef GRAFT_PLAN_SPEC_HOOKS_H
#define GRAFT_PLAN_SPEC_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi/cdi.h"

/*
 * The environment of our own hooks: one entry, because low-level runtimes treat an empty list like
 * a missing one.
 */
#define GRAFT_HOOK_VARIABLE "NVIDIA_CTK_DEBUG=false"
/* The environment of other programs' hooks, if they have none: a shell script needs it. */
#define GRAFT_HOOK_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Returns the one entry for a hook without an environment, given the path of its program. */
const char *graft_spec_hook_variable(const char *path);

/*
 * Returns whether `hook` calls a hook that nvidia-cdi-hook has, through that program or as a
 * command of nvidia-ctk. Then *ret_first is the index of the argument after the program's name and
 * "hook".
 */
bool graft_spec_hook_is_ours(const struct graft_cdi_hook *hook, size_t *ret_first);
/* Returns whether nvidia-cdi-hook has a hook of this name. */
bool graft_is_hook_name(const char *name);

/*
 * Turns calls of `nvidia-ctk hook NAME` with a known name into calls of `program`, the path of our
 * nvidia-cdi-hook (NULL: changes no call), and gives an environment to each hook without one. The
 * list is replaced, not modified, so the specification as read stays intact. Returns -1 with
 * GRAFT_NO_MEMORY.
 */
int graft_spec_hooks_mend(const char *program, struct graft_arena *arena, struct graft_cdi_edits *edits,
			  struct graft_error *err);

/*
 * Likewise for a whole specification: the edits for all its devices, and those of each device.
 * Returns -1 with GRAFT_NO_MEMORY; the specification may then be partly changed.
 */
int graft_spec_hooks_mend_all(const char *program, struct graft_arena *arena, struct graft_cdi_spec *spec,
			      struct graft_error *err);

/*
 * Returns the program of the first call of nvidia-ctk that graft_spec_hooks_mend() would change;
 * NULL if there is none.
 */
const char *graft_spec_hooks_find_toolkit(const struct graft_cdi_spec *spec);

/*
 * Returns whether a specification was written by this nvidia-ctk or that of the existing stack, as
 * far as its contents show: it has a vendor name of NVIDIA, the variable that both give to all
 * containers, and no hooks but theirs.
 */
bool graft_spec_is_of_toolkit(const struct graft_cdi_spec *spec);

/*
 * The hook that runs others, and the separator between them: PROGRAM sequence [--rootfs DIR] HOOK
 * [OPTION...] --then HOOK [OPTION...].
 */
#define GRAFT_SEQUENCE_HOOK "sequence"
#define GRAFT_SEQUENCE_THEN "--then"

/*
 * Takes apart what `nvidia-ctk cdi generate --late-mounts` has joined, in a whole specification:
 * sequences of our hooks become these hooks, and files of mount-files become mounts. What is not
 * understood stays a hook. Lists are replaced, not modified. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_spec_hooks_take_apart(struct graft_arena *arena, struct graft_cdi_spec *spec, struct graft_error *err);

/*
 * Joins each run of consecutive createContainer hooks in `edits` that are calls of `program` (a
 * path) with hooks that this version has, and that have the same environment, into one hook. Hooks
 * of other stages may be between them, other hooks of this stage may not; the order is kept. A
 * sequence is joined like the hooks in it, unless it names a root. Hooks
 * with a timeout, or with options that only work alone (--container-spec), are left as they are.
 * `root` is the container's root, an absolute path that is passed to each joined hook, and then a
 * single hook becomes a sequence as well; NULL = they read the OCI state. edits->hooks is replaced
 * by a list in the arena. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_join_hooks(const char *program, const char *root, struct graft_arena *arena, struct graft_cdi_edits *edits,
		     struct graft_error *err);

#endif
