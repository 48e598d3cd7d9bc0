/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_edits: puts container edits into an OCI configuration (SPEC runtime-and-hook 6.4, ctk-and-cdi 5.6). The document is changed in memory
 * only; a failed function may leave it partly edited, and the caller then drops it.
 */
#ifndef GRAFT_APPLY_OCI_EDITS_H
#define GRAFT_APPLY_OCI_EDITS_H

#include <stdbool.h>

#include "base/error.h"
#include "formats/cdi.h"
#include "formats/json_document.h"

/*
 * Applies one set: env (an existing variable is replaced in its place, Q10; all others of that name are removed), device nodes with their cgroup rules
 * (each rule once), net devices, mounts (then all sorted by depth), hooks, intelRdt, additional gids. Facts of nodes that are missing are read from the host node (lstat).
 * -1: GRAFT_NOT_FOUND "failed to stat CDI host device ...", GRAFT_INVALID (type mismatch, unknown hook name), GRAFT_FORMAT.
 */
int graft_oci_apply_edits(struct graft_json_document *document, const struct graft_cdi_edits *edits,
			  struct graft_error *err);

/* Removes the NVIDIA prestart hooks (SPEC 6.2). Returns how many, or -1. */
int graft_oci_remove_runtime_hook(struct graft_json_document *document, struct graft_error *err);
/* Appends `path` as prestart hook unless one of its kind is there (SPEC 6.3). */
int graft_oci_insert_runtime_hook(struct graft_json_document *document, const char *path, struct graft_error *err);

#endif
