/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_oci: applies a plan to a container that is not there yet: to its OCI configuration, and to its root file system before the low-level runtime
 * starts. Three places, in this order of preference (docs/decisions/0010-one-hook.md):
 *
 *   config.json       device nodes, cgroup rules, mounts, variables, groups: the low-level runtime does them
 *   the root itself   links, files, the loader's cache, when it is mounted, writable, and no mount of config.json covers the paths
 *   one hook          what is left, as the argument of one static program at createContainer
 *
 * Where the caller comes back when the low-level runtime has made the container and has not started it, what is left below /proc and /dev waits for
 * that instead (graft_apply_to_created()), and there is no hook (docs/decisions/0023-after-create.md).
 */
#ifndef GRAFT_APPLY_TO_OCI_H
#define GRAFT_APPLY_TO_OCI_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "formats/cdi.h"
#include "formats/json_document.h"
#include "formats/oci_spec.h"
#include "plan/plan.h"

/* What is to be done when the low-level runtime has made the container. */
struct graft_oci_waiting {
	struct graft_plan *plan; /* with memory of its own; NULL = nothing */
	dev_t dev;               /* the directory that will be the container's root */
	ino_t inode;
};
/* Leaves it empty. */
void graft_oci_waiting_done(struct graft_oci_waiting *waiting);

struct graft_oci_options {
	const char *hook_path;   /* absolute path of nvidia-cdi-hook */
	const char *hook_root;   /* the root that it is told, absolute; NULL = it reads the OCI state. Borrowed */
	bool no_additional_gids; /* features.no-additional-gids-for-device-nodes */
	bool no_root_work; /* always leave the root's work to the hook (for tests, and where the root is not known) */
	/* Directories that the loader of the container's root searches, where they are known; 0: they are read when they matter. Borrowed. */
	const char **loader_dirs;
	size_t n_loader_dirs;
	/* Paths over which something is mounted besides what `spec` and the plan say. Borrowed. */
	const char **other_mounts;
	size_t n_other_mounts;
	struct graft_texts *texts; /* what was read of the root before (base/texts.h); NULL = nothing. Borrowed */
	const struct graft_log *log;
	/* Becomes what waits until the container is made, which the caller has to graft_oci_waiting_done(). NULL: nobody comes back. */
	struct graft_oci_waiting *ret_waiting;
};

/*
 * What a plan becomes: container edits, and the plan of what neither they nor a runtime can do (NULL when nothing is left). All in the arena.
 * Pure: nothing is opened.
 */
int graft_plan_to_edits(const struct graft_plan *plan, const struct graft_oci_options *options,
			struct graft_arena *arena, struct graft_cdi_edits *ret_edits, struct graft_plan **ret_rest,
			struct graft_error *err);

/*
 * Applies the plan: edits `document` (not yet written), and works on the root where it may. All or nothing: a failure undoes what was done in the root.
 * `bundle` is the bundle's directory, NULL = the working directory; root.path is read relative to it.
 */
int graft_apply_to_oci(const struct graft_plan *plan, const char *bundle, const struct graft_oci_spec *spec,
		       const struct graft_oci_options *options, struct graft_json_document *document,
		       struct graft_error *err);

/*
 * Applies what waited to a container that is made and not started: `pid` is that of its process, which has the container's root for its own. All or
 * nothing. -1: as graft_target_open_created() and graft_apply_to_namespace().
 */
int graft_apply_to_created(const struct graft_oci_waiting *waiting, pid_t pid, const struct graft_log *log,
			   struct graft_error *err);

#endif
