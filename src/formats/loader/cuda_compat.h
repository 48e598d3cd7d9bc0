/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_compat: reads how a CUDA forward-compatibility library of an image describes itself (the
 * note .note.cuda.fwd_compatibility of its libcuda), and decides whether to use it with a driver
 * (SPEC ctk-and-cdi 2.4). The bytes are untrusted. Apart from reading them, these are pure
 * functions.
 */
#ifndef GRAFT_FORMATS_LOADER_CUDA_COMPAT_H
#define GRAFT_FORMATS_LOADER_CUDA_COMPAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/loader/elf.h"

struct graft_cuda_compat {
	const char *cuda_version; /* "12.9"; NULL if not specified */
	uint32_t *drivers;        /* driver branches that it supports */
	size_t n_drivers;
};

/*
 * Reads the note. Returns 1 if there is one, 0 if there is none, or -1 with GRAFT_FORMAT if it
 * cannot be understood. `name` is for messages.
 */
int graft_cuda_compat_read_fd(int fd, const char *name, struct graft_arena *arena, struct graft_cuda_compat *ret_compat,
			      struct graft_error *err);
/* Parses the content of the note's section. */
int graft_cuda_compat_parse_note(const void *bytes, size_t length, uint64_t alignment, const char *name,
				 struct graft_arena *arena, struct graft_cuda_compat *ret_compat,
				 struct graft_error *err);

/*
 * Returns whether the container should use the library. `compat` is NULL if the library has no
 * note; `version` is the one in its file name. The host's versions, `driver_version` and
 * `cuda_version`, may be NULL or "". A malformed version is treated as unknown.
 */
bool graft_cuda_compat_suits(const struct graft_cuda_compat *compat, const char *version, const char *driver_version,
			     const char *cuda_version);
/* Returns whether `text` is a version: one to three numbers separated by dots. */
bool graft_cuda_compat_is_version(const char *text);

#endif
