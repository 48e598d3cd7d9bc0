/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper: finds and becomes one of our own programs. Neither the environment nor the working
 * directory influences where it is searched for.
 */
#include "cli/helper.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void cli_helper_exec(const char *name, char *const *argv, char *const *environment)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	path[length > 0 ? length : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash && (size_t)(slash + 1 - path) + strlen(name) < sizeof(path)) {
		memcpy(slash + 1, name, strlen(name) + 1);
		(void)execve(path, argv, environment);
	}
	(void)snprintf(path, sizeof(path), "%s/%s", GRAFT_LIBEXEC_DIRECTORY, name);
	(void)execve(path, argv, environment);
}
