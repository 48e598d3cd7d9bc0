/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_file: config.json on disk. It is written completely or not at all (apply/replace.h): a reader
 * finds the old file or the new one, even after a kill -9 (SPEC runtime-and-hook Q20), and owner,
 * mode and attributes are kept.
 */
#ifndef GRAFT_APPLY_OCI_OCI_FILE_H
#define GRAFT_APPLY_OCI_OCI_FILE_H

#include "base/error.h"
#include "formats/json/json_document.h"

/*
 * Reads and parses <bundle>/config.json; bundle NULL = the working directory. Ignores what follows
 * the first JSON value, as low-level runtimes do. Fails with "error opening ...", "error reading
 * OCI specification file '...'", or a syntax error with file, line and column.
 */
int graft_oci_file_read(const char *bundle, struct graft_json_document **ret_document, struct graft_error *err);
/*
 * Writes the document back if it was changed; otherwise does not touch the file. Fails with "error
 * writing OCI specification file '...'".
 */
int graft_oci_file_write(const char *bundle, const struct graft_json_document *document, struct graft_error *err);

#endif
