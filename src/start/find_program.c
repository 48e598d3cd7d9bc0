/* SPDX-License-Identifier: Apache-2.0 */
/* find_program: searches PATH and the standard directories for a program. Runs none. */
#include "start/find_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"

#define STANDARD_PLACES "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

bool graft_is_program(const char *path, struct stat *ret_stat)
{
	return stat(path, ret_stat) == 0 && !S_ISDIR(ret_stat->st_mode) && (ret_stat->st_mode & 0111) != 0;
}

struct search {
	const char *name;
	bool (*is_wanted)(void *arg, const char *path, const struct stat *st);
	void *arg;
	const struct graft_log *log;
};

/* Searches the directories of `list`, except for those that are also in `without`. */
static bool search_list(const struct search *search, const char *list, const char *without, char path[PATH_MAX])
{
	struct stat st;

	for (const char *at = list; at; at = strchr(at, ':')) {
		int length, n;

		at += at[0] == ':';
		length = (int)strcspn(at, ":");
		if (graft_list_has_bytes(without, ':', at, (size_t)length))
			continue;
		if (at[0] != '/') {
			graft_debug(search->log, "ignoring '%.*s' in PATH: it is not absolute", length, at);
			continue;
		}
		n = snprintf(path, PATH_MAX, "%.*s/%s", length, at, search->name);
		if (n < PATH_MAX && graft_is_program(path, &st) &&
		    (!search->is_wanted || search->is_wanted(search->arg, path, &st)))
			return true;
	}
	return false;
}

bool graft_find_program(const char *name, bool (*is_wanted)(void *arg, const char *path, const struct stat *st),
			void *arg, const struct graft_log *log, char path[PATH_MAX])
{
	const struct search search = { name, is_wanted, arg, log };
	const char *list = secure_getenv("PATH");

	return search_list(&search, list ? list : "", "", path) ||
	       search_list(&search, STANDARD_PLACES, list ? list : "", path);
}
