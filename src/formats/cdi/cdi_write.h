/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_write: CDI specs as text, in the layout that other generators use (SPEC ctk-and-cdi 1.5
 * "Serialisation", 4.11). Pure.
 */
#ifndef GRAFT_FORMATS_CDI_CDI_WRITE_H
#define GRAFT_FORMATS_CDI_CDI_WRITE_H

#include "base/buffer.h"
#include "formats/cdi/cdi.h"

enum graft_cdi_format { GRAFT_CDI_JSON, GRAFT_CDI_YAML };

/*
 * Appends the spec as one document. Its version is the spec's own or, if that is NULL, the lowest
 * sufficient one. Annotations are sorted by key; empty members are omitted. The same spec always
 * gives the same bytes.
 *
 * The result is read back, so that a spec which no reader would accept is never returned. Returns
 * 0, or -1 with nothing appended: GRAFT_FORMAT "FILE: line 1, column 2: invalid CDI Spec: ..." as
 * from graft_cdi_spec_read(); GRAFT_INVALID for a text that is not UTF-8 and for an annotation that
 * graft_cdi_check_annotations() refuses; GRAFT_NO_MEMORY.
 */
int graft_cdi_spec_write(const struct graft_cdi_spec *spec, enum graft_cdi_format format, struct graft_buffer *out,
			 struct graft_error *err);

/*
 * Returns the lowest version that supports everything in the spec (SPEC ctk-and-cdi 5.3). The
 * string is a constant.
 */
const char *graft_cdi_spec_minimum_version(const struct graft_cdi_spec *spec);

#endif
