/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_file: config.json on disk. Written whole or not at all: a new file in the bundle, with owner, mode, ACL-free attributes and SELinux label of the old
 * one, renamed over it; where the bundle cannot be written, in place (Q20). Whoever reads it meanwhile, or after a kill -9, finds the old or
 * the new one. A config.json that is a link is followed, and the file it leads to is replaced.
 */
#ifndef GRAFT_APPLY_OCI_FILE_H
#define GRAFT_APPLY_OCI_FILE_H

#include "base/error.h"
#include "formats/json_document.h"

/* Reads and parses <bundle>/config.json; bundle NULL = the working directory. *ret_path (malloc'ed, for messages) may be NULL. */
int graft_oci_file_read(const char *bundle, struct graft_json_document **ret_document, struct graft_error *err);
/* Writes it back when it was changed; otherwise the file is not touched. */
int graft_oci_file_write(const char *bundle, const struct graft_json_document *document, struct graft_error *err);

#endif
