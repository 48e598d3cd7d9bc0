/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_edits: puts container edits into an OCI configuration (SPEC runtime-and-hook 6.4, SPEC
 * ctk-and-cdi 5.6). Changes the document in memory only; a failed function may leave it partly
 * edited, and the caller must then discard it.
 */
#ifndef GRAFT_APPLY_OCI_OCI_EDITS_H
#define GRAFT_APPLY_OCI_OCI_EDITS_H

#include <stdbool.h>

#include "base/error.h"
#include "formats/cdi/cdi.h"
#include "formats/json/json_document.h"

/*
 * Applies one set: env (an existing variable is replaced in its position, SPEC runtime-and-hook
 * Q10; further ones of that name are removed), device nodes with their cgroup rules (each rule
 * once), net devices, mounts (then all are sorted by depth), hooks (one without an environment gets
 * one), intelRdt, additional gids. Missing properties of nodes are read from the host node (lstat).
 * Fails with GRAFT_NOT_FOUND "failed to stat CDI host device ...", GRAFT_INVALID (type mismatch,
 * unknown hook name) or GRAFT_FORMAT.
 */
int graft_oci_apply_edits(struct graft_json_document *document, const struct graft_cdi_edits *edits,
			  struct graft_error *err);

/*
 * Removes the NVIDIA prestart hooks (SPEC runtime-and-hook 6.2). Returns how many were removed, or
 * -1.
 */
int graft_oci_remove_runtime_hook(struct graft_json_document *document, struct graft_error *err);
/*
 * Appends `path` as a prestart hook with these variables, unless there is a hook of this kind
 * already (SPEC runtime-and-hook 6.3).
 */
int graft_oci_insert_runtime_hook(struct graft_json_document *document, const char *path, const char **env,
				  size_t n_env, struct graft_error *err);
/*
 * Gives an environment to each createContainer hook without one, no matter where the hook comes
 * from: a low-level runtime would give it the container's. Hooks of other stages run with the
 * engine's environment, or in the container. Returns how many hooks were changed, or -1;
 * GRAFT_INVALID if a path is not absolute, since the low-level runtime would run the image's file.
 */
int graft_oci_close_hooks(struct graft_json_document *document, struct graft_error *err);
/* Returns the number of hooks of a stage, without dockerd's that connects the network. */
size_t graft_oci_count_hooks(const struct graft_json_document *document, const char *stage);
/*
 * Returns whether a hook runs while the container is created and may use what is mounted by then.
 */
bool graft_oci_has_early_hooks(const struct graft_json_document *document);

#endif
