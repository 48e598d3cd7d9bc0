/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start: one `create` of a container, and the four modes that can give it its GPUs. Each mode
 * determines what to give and edits config.json and, where it may, the container's root (SPEC
 * runtime-and-hook 5 to 10). edit_bundle.h chooses the mode.
 */
#ifndef GRAFT_START_START_H
#define GRAFT_START_START_H

#include "apply/oci/to_oci.h"
#include "base/arena.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/json/json_document.h"
#include "formats/oci_spec.h"
#include "request/config.h"
#include "request/container.h"
#include "request/oci_arguments.h"

/*
 * One `create`, as a mode gets it. A mode edits `document` and, where it may, the container's root;
 * it writes no file of the bundle.
 */
struct graft_start {
	const struct graft_config *config;
	const char *low_level; /* path of the low-level runtime */
	const char *bundle;    /* NULL = the working directory */
	struct graft_json_document *document;
	const struct graft_oci_spec *spec; /* view of the document as it was read */
	const bool *plain_mounts; /* of spec: graft_start_look_at_mounts() has seen no link on the way there; or NULL */
	const struct graft_container *container; /* its wants_devices is set, except in mode legacy */
	const char *hook_path;     /* nvidia-container-runtime-hook, resolved (SPEC runtime-and-hook 3.6) */
	const char *cdi_hook_path; /* nvidia-cdi-hook, resolved; absolute */
	const char *hook_root;     /* for --rootfs of its hooks, if they need not read the state; or NULL */
	const char **other_mounts; /* paths that container edits mount over, beyond what plans for the root contain */
	size_t n_other_mounts;
	bool has_lease_mps;       /* it has MPS from a lease: do not add the host's */
	struct graft_edit *edits; /* for the next plan: directories of the host, what is mounted in them, gates */
	size_t n_edits;
	bool hooks_follow; /* hooks of config.json to come may need what a plan mounts */
	bool no_board;     /* mode "auto" has found that this host is not a Tegra board */
	bool only_look;    /* say what would become of the driver's files, and do nothing: see give.h */
	bool comes_back;   /* the caller returns to apply what has to wait until the container is created */
	struct graft_oci_waiting waiting;
	const struct graft_log *log;
	struct graft_budget *budget; /* CPU time for reading the image and specifications */
	struct graft_arena *arena;   /* for everything that lives until execve */
};

/* The modes. -1: nothing is written, and the low-level runtime must not be started. */
int graft_mode_legacy(struct graft_start *create, struct graft_error *err);  /* SPEC runtime-and-hook 10 */
int graft_mode_jit_cdi(struct graft_start *create, struct graft_error *err); /* SPEC runtime-and-hook 7 */
int graft_mode_cdi(struct graft_start *create, struct graft_error *err);     /* SPEC runtime-and-hook 8 */
int graft_mode_csv(struct graft_start *create, struct graft_error *err);     /* SPEC runtime-and-hook 9 */

/*
 * Edits config.json in the bundle of `arguments` (its `bundle` NULL or empty = the working
 * directory) as its container requests, in the mode `word` ("auto", "legacy", ...). If the
 * container requests no GPU, only mode legacy is called; for the other modes the file is then
 * rewritten only if it holds a prestart hook of NVIDIA's or a createContainer hook without an
 * environment. `low_level` is the path of the low-level runtime that will read the file.
 * *ret_waiting is the work left for when the container has been created (after_create.h), and
 * belongs to the caller; `ret_waiting` NULL: the caller does not come back. -1: nothing was
 * written.
 */
int graft_start_edit_bundle(const struct graft_config *config, const char *word, const char *low_level,
			    const struct graft_oci_arguments *arguments, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_oci_waiting *ret_waiting, struct graft_error *err);

#endif
