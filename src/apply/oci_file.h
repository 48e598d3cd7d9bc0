/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_file: config.json on disk. Written whole or not at all: a new file in the bundle, with owner, mode, user attributes, ACL and SELinux label of
 * the old one, renamed over it. Whoever reads it meanwhile, or after a kill -9, finds the old or the new one (Q20). Only where no such
 * file can be made (the bundle cannot be written, the owner cannot be given, config.json is a mount of its own) is it written in place. A
 * config.json that is a link is followed, and the file it leads to is replaced.
 */
#ifndef GRAFT_APPLY_OCI_FILE_H
#define GRAFT_APPLY_OCI_FILE_H

#include "base/error.h"
#include "formats/json_document.h"

/*
 * Reads and parses <bundle>/config.json; bundle NULL = the working directory. What follows the first JSON value is not looked at, as the low-level
 * runtimes do it. -1: "error opening ...", "error reading OCI specification file '...'", or that it is no JSON, with file, line and column.
 */
int graft_oci_file_read(const char *bundle, struct graft_json_document **ret_document, struct graft_error *err);
/* Writes it back when it was changed; otherwise the file is not touched. -1: "error writing OCI specification file '...'". */
int graft_oci_file_write(const char *bundle, const struct graft_json_document *document, struct graft_error *err);

#endif
