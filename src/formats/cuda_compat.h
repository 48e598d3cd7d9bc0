/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_compat: what a CUDA forward-compatibility library of an image says of itself (the note .note.cuda.fwd_compatibility of its libcuda), and whether it
 * is to be used with a driver (SPEC ctk-and-cdi 2.4). Untrusted bytes; pure but for the reading.
 */
#ifndef GRAFT_FORMATS_CUDA_COMPAT_H
#define GRAFT_FORMATS_CUDA_COMPAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/elf.h"

struct graft_cuda_compat {
	const char *cuda_version; /* "12.9"; NULL = it does not say */
	uint32_t *drivers;        /* driver branches that it works with */
	size_t n_drivers;
};

/* 1: it has a note; 0: it has none; -1 with GRAFT_FORMAT: what it has cannot be understood. `name` is for messages. */
int graft_cuda_compat_read(const struct graft_elf_source *source, const char *name, struct graft_arena *arena,
			   struct graft_cuda_compat *ret_compat, struct graft_error *err);
int graft_cuda_compat_read_fd(int fd, const char *name, struct graft_arena *arena, struct graft_cuda_compat *ret_compat,
			      struct graft_error *err);
/* The content of the note's section. */
int graft_cuda_compat_parse_note(const void *bytes, size_t length, uint64_t alignment, const char *name,
				 struct graft_arena *arena, struct graft_cuda_compat *ret_compat,
				 struct graft_error *err);

/*
 * Whether the container shall use the library. `compat` NULL = it says nothing of itself; `version` is the one in its file name; of the host's versions either may be
 * NULL or "". A version that is none counts as unknown.
 */
bool graft_cuda_compat_suits(const struct graft_cuda_compat *compat, const char *version, const char *driver_version,
			     const char *cuda_version);
/* Whether `text` is a version: one to three numbers with dots between. */
bool graft_cuda_compat_is_version(const char *text);

#endif
