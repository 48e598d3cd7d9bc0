/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounted_libraries: what the files that a specification mounts are, by a look at the host. They are the host's own, named by whoever wrote the specification; nothing of a container
 * is looked at.
 */
#ifndef GRAFT_HOST_MOUNTED_LIBRARIES_H
#define GRAFT_HOST_MOUNTED_LIBRARIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi.h"

/* A library that is mounted into one of the folders that were asked about. */
struct graft_mounted_library {
	const char *path;   /* in the container */
	const char *soname; /* its file's name where it says none */
	uint32_t abi_flags; /* formats/elf.h */
};

struct graft_mounted_libraries {
	struct graft_mounted_library *items; /* in the order of the mounts */
	size_t n;
	const char **
	    others; /* container paths of all other mounts: directories, nodes, files that are no libraries of a folder */
	size_t n_others;
	const char **directories; /* those of them that are directories of the host */
	size_t n_directories;
	const char **sources; /* host paths that are there, of the files of the host, in the order of the mounts */
	size_t n_sources;
};

/*
 * Looks at all files of the host that are mounted, and reads the headers of the libraries in `folders` (absolute, without slashes at the end; /usr at their beginning makes no difference). A file that is none, or cannot be read, is another.
 * -1: GRAFT_NO_MEMORY.
 */
int graft_mounted_libraries_read(const struct graft_cdi_edits *edits, const char *const *folders, size_t n_folders,
				 struct graft_arena *arena, struct graft_mounted_libraries *ret,
				 struct graft_error *err);

#endif
