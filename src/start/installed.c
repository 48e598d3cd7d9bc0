/* SPDX-License-Identifier: Apache-2.0 */
/* installed: finds what is installed around a program. Decides nothing. */
#include "start/installed.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/read.h"
#include "base/strings.h"

#define DELETED     " (deleted)"
#define MODULES_MAX ((size_t)1 << 20)

bool graft_installed_directory(const char *self, char directory[PATH_MAX])
{
	size_t length = strlen(self), deleted = strlen(DELETED);
	const char *name;
	char *slash;

	if (graft_ends_with(self, DELETED))
		length -= deleted;
	if (self[0] != '/' || length >= PATH_MAX)
		return false;
	memcpy(directory, self, length);
	directory[length] = '\0';
	slash = strrchr(directory, '/');
	*slash = '\0';
	name = graft_path_name(directory);
	if (graft_starts_with(name, GRAFT_STAGE_PREFIX))
		memcpy(directory + (name - directory), GRAFT_TOOLKIT_DIRECTORY, sizeof(GRAFT_TOOLKIT_DIRECTORY));
	return true;
}

bool graft_own_directory(char directory[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return false;
	self[n] = '\0';
	return graft_installed_directory(self, directory);
}

const char *graft_own_config(struct graft_arena *arena)
{
	char directory[PATH_MAX], path[PATH_MAX + sizeof(GRAFT_OWN_CONFIG) + 1];
	struct stat st;

	if (!graft_own_directory(directory))
		return NULL;
	(void)snprintf(path, sizeof(path), "%s/" GRAFT_OWN_CONFIG, directory);
	return stat(path, &st) == 0 ? graft_arena_strdup(arena, path) : NULL;
}

static bool is_in_modules(const char *proc)
{
	auto_arena struct graft_arena *arena = graft_arena_new(MODULES_MAX * 2);
	char path[PATH_MAX];
	const char *text = NULL;
	auto_close int fd = -1;
	size_t length = 0;

	(void)snprintf(path, sizeof(path), "%s/modules", proc);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return arena && fd >= 0 && graft_read_fd(fd, MODULES_MAX, arena, &text, &length) == 0 &&
	       (graft_starts_with(text, "nvidia ") || strstr(text, "\nnvidia "));
}

bool graft_driver_is_loaded(const char *proc)
{
	char path[PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/driver/nvidia/version", proc);
	return stat(path, &st) == 0 || is_in_modules(proc);
}
