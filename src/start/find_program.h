/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find_program: finds a program by name; the name is not a pattern (SPEC runtime-and-hook 3.4, SPEC
 * ctk-and-cdi 1.5). Relative directories in PATH are ignored: the working directory of a runtime is
 * arbitrary.
 */
#ifndef GRAFT_START_FIND_PROGRAM_H
#define GRAFT_START_FIND_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/log.h"

/* Whether `path` is an executable file. *ret_stat is its status, valid if it exists. */
bool graft_is_program(const char *path, struct stat *ret_stat);

/*
 * Finds the first program of that name, in PATH and then in the standard directories, that
 * `is_wanted` accepts; NULL = accept any. On success `path` holds its path; otherwise the content
 * of `path` is unspecified.
 */
bool graft_find_program(const char *name, bool (*is_wanted)(void *arg, const char *path, const struct stat *st),
			void *arg, const struct graft_log *log, char path[PATH_MAX]);

#endif
