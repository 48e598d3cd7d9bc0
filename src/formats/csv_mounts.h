/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_mounts: the lists of files and devices that a Tegra board's packages install for containers (SPEC runtime-and-hook 9.2). Lines of
 * "type, path"; a path may be a pattern.
 */
#ifndef GRAFT_FORMATS_CSV_MOUNTS_H
#define GRAFT_FORMATS_CSV_MOUNTS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum graft_csv_type { GRAFT_CSV_DEV, GRAFT_CSV_DIR, GRAFT_CSV_LIB, GRAFT_CSV_SYM, GRAFT_CSV_TYPE_MAX };
extern const char *const graft_csv_type_names[GRAFT_CSV_TYPE_MAX]; /* dev dir lib sym */

struct graft_csv_entry {
	enum graft_csv_type type;
	const char *path;
};

/*
 * Appends the entries of a file to a list that began empty. A line that is none (blank, a heading, of an unknown type, without a path, with a NUL) is left
 * out; *ret_skipped counts those that are not blank. -1: GRAFT_TOO_BIG (65536 entries), GRAFT_NO_MEMORY.
 */
int graft_csv_read(const char *text, size_t length, struct graft_arena *arena, struct graft_csv_entry **entries,
		   size_t *n_entries, size_t *ret_skipped, struct graft_error *err);

#endif
