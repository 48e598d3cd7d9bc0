/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_directory: an image's directory of CUDA forward-compatibility libraries, judged as the
 * hook enable-cuda-compat does (SPEC ctk-and-cdi 2.4): libcuda decides for all libraries in its
 * directory. Pure.
 */
#ifndef GRAFT_PLAN_COMPAT_DIRECTORY_H
#define GRAFT_PLAN_COMPAT_DIRECTORY_H

#include <stdbool.h>

#include "base/arena.h"
#include "image/inspect.h"
#include "plan/plan.h"

struct graft_compat_directory {
	const struct graft_compat_library *cuda; /* libcuda.so.<version>; NULL = none, or more than one */
	bool suits;                              /* use it with the host's driver */
};

/*
 * Returns whether to use a libcuda.so.<version> with the host's driver, according to its own note
 * or to its version. Versions as below. If memory is exhausted, the arena records it.
 */
bool graft_compat_suits(const struct graft_compat_library *cuda, const char *driver_version, const char *cuda_version,
			struct graft_arena *arena);

/*
 * Examines the image's directory. Versions are the host's, "550.54.14" and "12.4"; NULL or "" = not
 * known. If memory is exhausted, the arena records it.
 */
struct graft_compat_directory graft_compat_directory(const struct graft_image *image, const char *driver_version,
						     const char *cuda_version, struct graft_arena *arena);
/* Returns why a library is not used, as a sentence for a person; NULL if it is. */
const char *graft_compat_directory_obstacle(const struct graft_compat_directory *directory,
					    const struct graft_compat_library *library);

/*
 * Appends a library to an LDCACHE edit, by its soname and by its development links, and its
 * directory. Strings are copied. If memory is exhausted, the arena records it.
 */
void graft_compat_add(struct graft_arena *arena, struct graft_edit *edit, const struct graft_compat_library *library);

#endif
