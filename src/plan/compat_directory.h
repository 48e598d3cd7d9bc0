/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_directory: an image's directory of CUDA forward-compatibility libraries, as the hook enable-cuda-compat decides on it (SPEC ctk-and-cdi 2.4): libcuda
 * speaks for all that lies beside it. Pure.
 */
#ifndef GRAFT_PLAN_COMPAT_DIRECTORY_H
#define GRAFT_PLAN_COMPAT_DIRECTORY_H

#include <stdbool.h>

#include "base/arena.h"
#include "host/image.h"
#include "plan/plan.h"

struct graft_compat_directory {
	const struct graft_compat_library *cuda; /* libcuda.so.<version>; NULL = there is none, or more than one */
	bool suits;                              /* it is to be used with the host's driver */
};

/*
 * Whether a libcuda.so.<version> is to be used with the host's driver, by its own word or by its version. Versions as below. Without memory the arena remembers.
 */
bool graft_compat_suits(const struct graft_compat_library *cuda, const char *driver_version, const char *cuda_version,
			struct graft_arena *arena);

/* What the image has. Versions of the host, "550.54.14" and "12.4"; NULL or "" = not known. Without memory the arena remembers. */
struct graft_compat_directory graft_compat_directory(const struct graft_image *image, const char *driver_version,
						     const char *cuda_version, struct graft_arena *arena);
/* Why a library is not used, as a sentence for a person; NULL when it is. */
const char *graft_compat_directory_obstacle(const struct graft_compat_directory *directory,
					    const struct graft_compat_library *library);

/*
 * Appends a library by its soname and by its development links, and its directory, to an LDCACHE edit. The words are copies. Without memory the arena
 * remembers.
 */
void graft_compat_add(struct graft_arena *arena, struct graft_edit *edit, const struct graft_compat_library *library);

#endif
