/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_mounts: which files are mounted when the container has been created, instead of by the
 * low-level runtime (docs/decisions/0034-driver-tree.md). Private to to_oci.
 */
#ifndef GRAFT_APPLY_OCI_LATE_MOUNTS_H
#define GRAFT_APPLY_OCI_LATE_MOUNTS_H

#include <stdbool.h>

#include "apply/oci/oci_root.h"
#include "apply/oci/to_oci.h"

/*
 * BASELINE 5.2: whether the kernel can mount what is the host's in another mount namespace. Who
 * only looks may lack the right to ask.
 */
bool oci_can_mount_later(bool only_look);
/*
 * Moves mounts of files from `edits` to `later`, as far as that makes no difference to the
 * container, and lists them in the annotation GRAFT_OCI_LATE_MOUNTS. `waits`: other edits may wait.
 * Returns -1 with GRAFT_NO_MEMORY, or if annotations cannot be edited.
 */
int oci_let_mounts_wait(const struct graft_plan *plan, const struct graft_oci_spec *spec,
			const struct graft_oci_options *options, struct graft_oci_root *root, bool waits,
			struct graft_json_document *document, struct graft_plan *later, struct graft_cdi_edits *edits,
			struct graft_error *err);

#endif
