/* SPDX-License-Identifier: Apache-2.0 */
/* version: version and build information of all programs and the library. */
#ifndef GRAFT_START_VERSION_H
#define GRAFT_START_VERSION_H

#include "base/buffer.h"

/* Appends the --version output of nvidia-container-cli. */
void graft_version_text(struct graft_buffer *out);
/* Appends its last line: Graft's own version, which the lines that callers parse do not contain. */
void graft_version_own(struct graft_buffer *out);
/* Appends the part of it about the build, which the library's version text also contains. */
void graft_version_build(struct graft_buffer *out);
/* The revision of the source; "unknown" if it was not built from a checkout. Static. */
const char *graft_version_revision(void);

#endif
