/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_write: CDI specs as text, in the layout that programs of this field write (SPEC ctk-and-cdi 1.5 "Serialisation", 4.11). Pure. */
#ifndef GRAFT_FORMATS_CDI_WRITE_H
#define GRAFT_FORMATS_CDI_WRITE_H

#include "base/buffer.h"
#include "formats/cdi.h"

enum graft_cdi_format { GRAFT_CDI_JSON, GRAFT_CDI_YAML };

/*
 * Appends the spec as one document. Version: the spec's own; where that is NULL the lowest that will do. Annotations are written in the order of
 * their keys; what is empty is left out. The same spec gives the same bytes.
 *
 * What was written is read again, so a spec that no reader would take is never handed out: -1 and GRAFT_FORMAT "FILE: line 1, column 2:
 * invalid CDI Spec: ..." as by graft_cdi_spec_read(); GRAFT_INVALID for a text that is not UTF-8 and for an annotation that
 * graft_cdi_check_annotations() refuses; GRAFT_NO_MEMORY. Nothing is appended then.
 */
int graft_cdi_spec_write(const struct graft_cdi_spec *spec, enum graft_cdi_format format, struct graft_buffer *out,
			 struct graft_error *err);

/* The lowest version that has all that the spec uses (SPEC ctk-and-cdi 5.3). A constant. */
const char *graft_cdi_spec_minimum_version(const struct graft_cdi_spec *spec);

#endif
