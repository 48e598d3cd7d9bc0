/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image: the few facts of a container's root file system that a plan depends on. Read-only, below the root's
 * descriptor; everything read is untrusted and bounded. Plain data with a JSON form.
 */
#ifndef GRAFT_HOST_IMAGE_H
#define GRAFT_HOST_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "formats/record.h"

/* Where images have CUDA forward-compatibility libraries. */
#define GRAFT_COMPAT_DIRECTORY "/usr/local/cuda/compat"

/* A library of the CUDA forward-compatibility directory of the image (SPEC 9.8). */
struct graft_compat_library {
	const char *path; /* below the container's root, resolved */
	const char *soname;
	uint32_t abi_flags;
	uint32_t major; /* digits after ".so." in its name; 0 = none */
	/* What libcuda says of itself (SPEC ctk-and-cdi 2.4), formats/cuda_compat.h. */
	bool note;
	const char *note_cuda;     /* CUDA version; NULL = it does not say */
	const char **note_drivers; /* driver branches that it works with, as numbers: "550" */
	size_t n_note_drivers;
	/* Names of links of the directory that lead to it: "libcuda.so" of what has the soname "libcuda.so.1" (SPEC ld-so-cache 8). */
	const char **development_links;
	size_t n_development_links;
};

enum graft_libc { GRAFT_LIBC_UNKNOWN, GRAFT_LIBC_GLIBC, GRAFT_LIBC_MUSL };

struct graft_image {
	bool debian;  /* /etc/debian_version exists */
	bool usr_lib; /* /usr/lib is a directory */
	bool usr_lib32;
	bool usr_lib_is_usr_lib64; /* both are the same directory */
	bool proc_driver;          /* /proc/driver exists in the container's procfs */
	bool proc_driver_nvidia;
	enum graft_libc libc;
	const char *musl_path_file; /* /etc/ld-musl-x86_64.path (whether or not it exists), musl only */
	const char *musl_path;      /* its content, NULL when absent */
	const char **loader_dirs;   /* directories that the loader or its own configuration already searches */
	size_t n_loader_dirs;
	/* Those of the file that Graft wrote when the root was used before (formats/ldsoconf.h): what was missing then. */
	const char **added_dirs;
	size_t n_added_dirs;
	struct graft_compat_library *compat;
	size_t n_compat;
};

extern const struct graft_record graft_image_record;

/* `want_compat`: look into <cuda>/compat. Returns 0; unreadable parts are left at their defaults and logged. */
int graft_image_inspect(const struct graft_root *root, bool want_compat, const struct graft_log *log,
			struct graft_arena *arena, struct graft_image *ret_image, struct graft_error *err);

/*
 * The same but for the layout, which only matters to plans that choose directories of the image: `libc`, the fields of musl, the loader's directories,
 * and the compatibility libraries.
 */
int graft_image_inspect_loader(const struct graft_root *root, bool want_compat, const struct graft_log *log,
			       struct graft_arena *arena, struct graft_image *ret_image, struct graft_error *err);

/* The compatibility libraries of one directory of the image alone. */
int graft_image_find_compat(const struct graft_root *root, const char *directory, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_compat_library **ret_libraries, size_t *ret_n,
			    struct graft_error *err);

#endif
