/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filelist: the driver's own list of its files, sandboxutils-filelist.json (drivers since 570): a JSON array of objects
 * with a name (a base name, or one below the driver's package: "firmware/gsp_ga10x.bin"), a type ("LIB", "BINARY",
 * "JSON", "FIRMWARE", "SYMLINK", "MODPROBE", ...) and a list of categories ("cuda", "nvml", "egl", ...). It says which
 * files a driver consists of, not where a distribution puts them. A file may be listed several times.
 */
#ifndef GRAFT_HOST_FILELIST_H
#define GRAFT_HOST_FILELIST_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define GRAFT_FILELIST_NAME "nvidia/files.d/sandboxutils-filelist.json" /* below a data directory */

struct graft_filelist_entry {
	const char *name; /* last component */
	const char *type; /* "" when the list does not say */
};

/*
 * Entries without a usable name (absent, empty, ".", "..") are skipped; unknown members and types are not an error. -1 with GRAFT_FORMAT
 * when the bytes are not a JSON array.
 */
int graft_filelist_read(const char *bytes, size_t length, struct graft_arena *arena,
			struct graft_filelist_entry **ret_entries, size_t *ret_n, struct graft_error *err);

#endif
