/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_oci: applies a plan to a container that is not there yet: to its OCI configuration, and to its root file system before the low-level runtime
 * starts. Three places, in this order of preference (docs/decisions/0010-one-hook.md):
 *
 *   config.json       device nodes, cgroup rules, mounts, variables, groups: the low-level runtime does them
 *   the root itself   links, files, the loader's cache, when it is mounted, writable, and no mount of config.json covers the paths
 *   one hook          what is left, as the argument of one static program at createContainer
 */
#ifndef GRAFT_APPLY_TO_OCI_H
#define GRAFT_APPLY_TO_OCI_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "formats/cdi.h"
#include "formats/json_document.h"
#include "formats/oci_spec.h"
#include "plan/plan.h"

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

#endif
