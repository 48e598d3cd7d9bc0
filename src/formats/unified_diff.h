/* SPDX-License-Identifier: Apache-2.0 */
/* unified_diff: what changes from one text to another, in the form that diff -u prints and patch reads: three lines of context. */
#ifndef GRAFT_FORMATS_UNIFIED_DIFF_H
#define GRAFT_FORMATS_UNIFIED_DIFF_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

struct graft_diff_text {
	const char *name;  /* for the header: a path, or "/dev/null" for a file that is not there */
	const char *bytes; /* may be NULL when `length` is 0 */
	size_t length;
};

/*
 * Appends the difference; nothing for equal texts. It is the shortest one as long as the parts that differ are small (some thousand lines each); beyond
 * that they are shown as replaced as a whole. -1: GRAFT_NO_MEMORY.
 */
int graft_unified_diff(const struct graft_diff_text *before, const struct graft_diff_text *after,
		       struct graft_buffer *out, struct graft_error *err);

#endif
