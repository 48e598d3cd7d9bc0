/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_oci: applies a plan to a container that does not exist yet: to its OCI configuration, and to
 * its root file system before the low-level runtime starts. There are three places, in this order
 * of preference (docs/decisions/0010-one-hook.md):
 *
 *   config.json       device nodes, cgroup rules, mounts, variables, groups: the low-level runtime does them
 *   the root itself   links, files, the loader's cache, when it is mounted, writable, and no mount of config.json covers the paths
 *   one hook          what is left, as the argument of one static program at createContainer
 *
 * If the caller returns after the low-level runtime has created the container and before it is
 * started, edits below /proc and /dev wait for that moment (graft_apply_to_created()), and there is
 * no hook (docs/decisions/0023-after-create.md). With `late_mounts`, so do mounts of files
 * (docs/decisions/0034-driver-tree.md).
 */
#ifndef GRAFT_APPLY_OCI_TO_OCI_H
#define GRAFT_APPLY_OCI_TO_OCI_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "formats/cdi/cdi.h"
#include "formats/json/json_document.h"
#include "formats/oci_dev.h"
#include "formats/oci_spec.h"
#include "plan/plan.h"

/*
 * With `late_mounts`, the annotation that lists which files are mounted late, and why others are
 * not: "all files", "no file: REASON", "50 files; by the low-level runtime: PATH, PATH (REASON)".
 */
#define GRAFT_OCI_LATE_MOUNTS "graft.late-mounts"

/* Edits to make after the low-level runtime has created the container. */
struct graft_oci_waiting {
	struct graft_plan *plan; /* with memory of its own; NULL: nothing */
	dev_t dev;               /* the directory that will be the container's root */
	ino_t inode;
	struct graft_oci_dev oci_dev; /* in the memory of the plan */
	struct graft_budget *budget;  /* the rest of the start's budget; owned; NULL: a new one for this call */
};
/* Frees the plan and the budget, and leaves the struct empty. */
void graft_oci_waiting_done(struct graft_oci_waiting *waiting);

struct graft_oci_options {
	const char *hook_path; /* absolute path of nvidia-cdi-hook */
	/*
	 * The root, as nvidia-cdi-hook takes it with --rootfs; NULL: it reads the OCI state.
	 * Borrowed.
	 */
	const char *hook_root;
	bool hooks_follow;       /* hooks that are yet to be added may change the root */
	bool no_additional_gids; /* features.no-additional-gids-for-device-nodes */
	/*
	 * Directories of the host are mounts like files: for engines that apply edits
	 * themselves, and in a user namespace. Otherwise no low-level runtime mounts them
	 * (docs/decisions/0024-image-reader.md).
	 */
	bool mount_directories;
	bool no_root_work; /* always leave the root's edits to the hook (for tests, and if the root is not known) */
	/* Directories that the loader of the container's root searches; 0: unknown. Borrowed. */
	const char **loader_dirs;
	size_t n_loader_dirs;
	/*
	 * For each mount of `spec`: whether its destination is known to be canonical in the root
	 * and, as far as it exists, on the root's own mount. NULL: nothing is known. Borrowed.
	 */
	const bool *plain_mounts;
	/*
	 * Paths over which something is mounted, in addition to the mounts of `spec` and the plan.
	 * Borrowed.
	 */
	const char **other_mounts;
	size_t n_other_mounts;
	struct graft_budget *budget; /* of this start; NULL: a new one for this call. Borrowed */
	/*
	 * Files are mounted when the container is created, instead of by the low-level runtime,
	 * where that makes no difference (docs/decisions/0034-driver-tree.md). Needs `ret_waiting`.
	 */
	bool late_mounts;
	bool no_late_mounts; /* the container wants none, whatever `late_mounts` is; its annotation says so */
	/*
	 * Changes only the document, which gets no hook, and the annotation GRAFT_OCI_LATE_MOUNTS:
	 * what would become of the files. `ret_waiting` stays empty.
	 */
	bool only_look;
	const struct graft_log *log;
	/*
	 * Receives the edits that wait until the container is created; release it with
	 * graft_oci_waiting_done(). NULL: the caller does not return after the creation.
	 */
	struct graft_oci_waiting *ret_waiting;
};

/*
 * Applies the plan: edits `document`, which is not yet written, and changes the root where
 * possible. All or nothing: a failure undoes what was done in the root. `bundle` is the bundle's
 * directory, NULL = the working directory; root.path is relative to it.
 */
int graft_apply_to_oci(const struct graft_plan *plan, const char *bundle, const struct graft_oci_spec *spec,
		       const struct graft_oci_options *options, struct graft_json_document *document,
		       struct graft_error *err);

/*
 * For an engine that takes container edits and has no config.json yet: converts the plan to edits,
 * and what edits cannot express to one createContainer hook. Everything is in the arena or belongs
 * to the plan. Of `options` it uses the hook's path and no_additional_gids. Opens nothing. -1:
 * GRAFT_NO_MEMORY; GRAFT_TOO_BIG if the hook's argument would be too long for the kernel.
 */
int graft_plan_to_adjustment(const struct graft_plan *plan, const struct graft_oci_options *options,
			     struct graft_arena *arena, struct graft_cdi_edits *ret_edits, struct graft_error *err);

/*
 * Applies the waiting edits to a container that is created and not started. `pid` is that of its
 * process, which already has the container's root as its own. All or nothing. Fails like
 * graft_target_open_created() and graft_apply_to_namespace().
 */
int graft_apply_to_created(const struct graft_oci_waiting *waiting, pid_t pid, const struct graft_log *log,
			   struct graft_error *err);

#endif
