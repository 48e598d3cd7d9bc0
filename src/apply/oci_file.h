/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_file: config.json on disk. Written whole or not at all (apply/replace.h): whoever reads it meanwhile, or after a kill -9, finds the old
 * or the new one (Q20), and owner, mode and attributes stay.
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
