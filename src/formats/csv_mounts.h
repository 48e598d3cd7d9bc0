/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_mounts: the lists of files and devices that the packages of a Tegra board install for
 * containers (SPEC runtime-and-hook 9.2). Lines of "type, path", where the path may be a pattern.
 */
#ifndef GRAFT_FORMATS_CSV_MOUNTS_H
#define GRAFT_FORMATS_CSV_MOUNTS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum graft_csv_type { GRAFT_CSV_DEV, GRAFT_CSV_DIR, GRAFT_CSV_LIB, GRAFT_CSV_SYM, GRAFT_CSV_TYPE_MAX };

struct graft_csv_entry {
	enum graft_csv_type type;
	const char *path;
};

/*
 * Appends the entries of a file to `*entries`, which must be an empty list or the result of earlier
 * calls. Skips lines that are not entries: blank, a heading, of an unknown type, without a path, or
 * with a NUL. *ret_skipped is the number of skipped lines that are not blank. Returns 0, or -1 with
 * GRAFT_TOO_BIG (more than 65536 entries) or GRAFT_NO_MEMORY.
 */
int graft_csv_read(const char *text, size_t length, struct graft_arena *arena, struct graft_csv_entry **entries,
		   size_t *n_entries, size_t *ret_skipped, struct graft_error *err);

#endif
