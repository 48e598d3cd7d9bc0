/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect: the few facts about a container's root file system that a plan depends on, as plain data
 * with a JSON form. They are read by an unprivileged process (image/reader.h). The image controls
 * all of them, and all of them are bounded.
 */
#ifndef GRAFT_IMAGE_INSPECT_H
#define GRAFT_IMAGE_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/image_root.h"
#include "base/log.h"
#include "formats/record.h"
#include "image/reader.h"

/* Where images have CUDA forward-compatibility libraries. */
#define GRAFT_COMPAT_DIRECTORY "/usr/local/cuda/compat"

/*
 * A library in the image's directory for CUDA forward compatibility (SPEC libnvidia-container 9.8).
 */
struct graft_compat_library {
	const char *path; /* below the container's root, links resolved */
	const char *soname;
	uint32_t abi_flags;
	uint32_t major; /* digits after ".so." in its name; 0: none */
	/* The note of libcuda (SPEC ctk-and-cdi 2.4), see formats/loader/cuda_compat.h. */
	bool note;
	const char *note_cuda;     /* CUDA version; NULL if not specified */
	const char **note_drivers; /* driver branches that it supports, as numbers: "550" */
	size_t n_note_drivers;
	/*
	 * Names of links in the directory that resolve to it: "libcuda.so" for a library with the
	 * soname "libcuda.so.1" (SPEC ld-so-cache 8).
	 */
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
	const char *musl_path;      /* its content; NULL if it does not exist */
	const char **loader_dirs;   /* directories that the loader or its own configuration already searches */
	size_t n_loader_dirs;
	/*
	 * Directories from the file that Graft wrote when the root was used before
	 * (formats/loader/ldsoconf.h), because they were missing then.
	 */
	const char **added_dirs;
	size_t n_added_dirs;
	/*
	 * Those of /etc and the loader's directories that are on another mount than the root:
	 * nothing is written there.
	 */
	const char **foreign_dirs;
	size_t n_foreign_dirs;
	struct graft_compat_library *compat;
	size_t n_compat;
};

extern const struct graft_record graft_image_record;

/*
 * Inspects an image. `want_compat` includes GRAFT_COMPAT_DIRECTORY. Parts that cannot be read, or
 * not in time, keep their defaults and are logged. Fails like graft_reader_ask().
 */
int graft_image_inspect(const struct graft_image_root *root, bool want_compat, const struct graft_log *log,
			struct graft_arena *arena, struct graft_image *ret_image, struct graft_error *err);

/*
 * The same without the layout, which only matters to plans that choose directories of the image:
 * `libc`, the members for musl, the loader's directories and, unless `compat_directory` is NULL,
 * the compatibility libraries in that directory.
 */
int graft_image_inspect_loader(const struct graft_image_root *root, const char *compat_directory,
			       const struct graft_log *log, struct graft_arena *arena, struct graft_image *ret_image,
			       struct graft_error *err);

/*
 * The same in two steps, between which this process can do other work. Pass `reader` to
 * graft_reader_finish(); the answer is the image.
 */
int graft_image_start_loader(const struct graft_image_root *root, const char *compat_directory,
			     const struct graft_log *log, struct graft_reader *ret_reader, struct graft_error *err);

/* Finds only the compatibility libraries in a directory of the image. */
int graft_image_find_compat(const struct graft_image_root *root, const char *directory, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_compat_library **ret_libraries, size_t *ret_n,
			    struct graft_error *err);

/* Lists at most `max` names in a directory of the image. *ret_n is 0 if it does not exist. */
int graft_image_list_names(const struct graft_image_root *root, const char *directory, size_t max,
			   struct graft_arena *arena, const char ***ret_names, size_t *ret_n, struct graft_error *err);

#endif
