/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounted_libraries: identifies the files that a specification mounts, by examining them on the
 * host. They are the host's own, named by the author of the specification; nothing of a container
 * is examined.
 */
#ifndef GRAFT_HOST_MOUNTED_LIBRARIES_H
#define GRAFT_HOST_MOUNTED_LIBRARIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi/cdi.h"

/* A library that is mounted into one of the given directories. */
struct graft_mounted_library {
	const char *path;   /* in the container */
	const char *soname; /* the file name if the library has none */
	uint32_t abi_flags; /* formats/loader/elf.h */
};

struct graft_mounted_libraries {
	struct graft_mounted_library *items; /* in the order of the mounts */
	size_t n;
	/*
	 * Container paths of all other mounts: directories, nodes, files that are not libraries of
	 * a directory
	 */
	const char **others;
	size_t n_others;
	const char **directories; /* those of `others` that are directories on the host */
	size_t n_directories;
	const char **sources; /* host paths of mounted files that exist, in the order of the mounts */
	size_t n_sources;
};

/*
 * Examines all mounted files of the host, and reads the headers of the libraries in `folders`
 * (absolute, without trailing slashes; a leading /usr makes no difference). A file that is not a
 * library, or cannot be read, goes into `others`. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_mounted_libraries_read(const struct graft_cdi_edits *edits, const char *const *folders, size_t n_folders,
				 struct graft_arena *arena, struct graft_mounted_libraries *ret,
				 struct graft_error *err);

#endif
