/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find_program: searches a program by its name, which is no pattern (SPEC runtime-and-hook 3.4, ctk-and-cdi 1.5). Directories of PATH that are not absolute are passed
 * over: the working directory is nobody's choice in a runtime.
 */
#ifndef GRAFT_CLI_FIND_PROGRAM_H
#define GRAFT_CLI_FIND_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/log.h"

/* Whether there is a file that may be executed. */
bool cli_is_program(const char *path, struct stat *ret_stat);

/*
 * The first program of that name in PATH, else in the standard directories, for which `is_wanted` says yes; NULL = any. The path is in `path` then, which is of no
 * meaning otherwise.
 */
bool cli_find_program(const char *name, bool (*is_wanted)(void *arg, const char *path, const struct stat *st),
		      void *arg, const struct graft_log *log, char path[PATH_MAX]);

#endif
