/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_build: the modules that a Go program was built from, with their versions, as Go's linker
 * writes them into the section .go.buildinfo since Go 1.18. Programs built without modules, as
 * Debian's, do not list any.
 */
#ifndef GRAFT_FORMATS_LOADER_GO_BUILD_H
#define GRAFT_FORMATS_LOADER_GO_BUILD_H

#include <stddef.h>

#include "base/arena.h"

/*
 * Finds the version of a module in the bytes of the section; of a replaced module that of its
 * replacement. Returns it without the "v" ("0.8.0", "0.0.0-20240101000000-abcdef"), in the arena;
 * NULL if the section is damaged or does not list the module, or if out of memory.
 */
const char *graft_go_build_parse(const void *section, size_t length, const char *module, struct graft_arena *arena);
/*
 * The same for a program; also NULL if it is not a Go program. `arena` also holds the bytes of the
 * section.
 */
const char *graft_go_build_read(int fd, const char *module, struct graft_arena *arena);

#endif
