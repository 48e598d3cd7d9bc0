/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unified_diff: the difference between two texts, in the format of diff -u and patch, with three
 * lines of context.
 */
#ifndef GRAFT_FORMATS_UNIFIED_DIFF_H
#define GRAFT_FORMATS_UNIFIED_DIFF_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

struct graft_diff_text {
	const char *name;  /* for the header: a path, or "/dev/null" for a file that does not exist */
	const char *bytes; /* may be NULL if `length` is 0 */
	size_t length;
};

/*
 * Appends the difference; nothing for equal texts. It is minimal as long as the differing parts are
 * small (some thousand lines each). Larger parts are shown as replaced as a whole. Returns 0, or -1
 * with GRAFT_NO_MEMORY.
 */
int graft_unified_diff(const struct graft_diff_text *before, const struct graft_diff_text *after,
		       struct graft_buffer *out, struct graft_error *err);

#endif
