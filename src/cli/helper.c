/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper: finds and becomes one of our own programs. Neither the environment nor the working
 * directory influences where it is searched for.
 */
#include "cli/helper.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "start/installed.h"

void cli_helper_exec(const char *name, char *const *argv, char *const *environment)
{
	char directory[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];

	if (graft_own_directory(directory)) {
		(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
		(void)execve(path, argv, environment);
	}
	(void)snprintf(path, sizeof(path), "%s/%s", GRAFT_LIBEXEC_DIRECTORY, name);
	(void)execve(path, argv, environment);
}
