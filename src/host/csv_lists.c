/* SPDX-License-Identifier: Apache-2.0 */
/* csv_lists: which of the lists in the directory count (SPEC runtime-and-hook 9.1). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "host/csv.h"

/* The lists of the base system. All others come with libraries that newer images bring themselves. */
static const char *const base_names[] = { "devices.csv", "drivers.csv", "l4t.csv" };

static bool is_list_name(const char *name, bool all_files)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < GRAFT_COUNT(base_names); i++) {
		if (strcmp(name, base_names[i]) == 0)
			return true;
	}
	return all_files && length > 4 && strcasecmp(name + length - 4, ".csv") == 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void read_names(DIR *dir, bool all_files, const char *directory, struct graft_arena *arena,
		       const char ***ret_paths, size_t *ret_n)
{
	const struct dirent *entry;
	struct stat st;

	while ((entry = readdir(dir))) {
		const char *path;

		if (!is_list_name(entry->d_name, all_files) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		path = graft_arena_printf(arena, "%s/%s", directory, entry->d_name);
		if (path)
			(void)graft_arena_push_string(arena, ret_paths, ret_n, path);
	}
	if (*ret_n > 1)
		qsort(*ret_paths, *ret_n, sizeof(**ret_paths), compare);
}

int graft_csv_lists(const char *directory, bool all_files, const struct graft_log *log, struct graft_arena *arena,
		    const char ***ret_paths, size_t *ret_n, struct graft_error *err)
{
	auto_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	auto_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	*ret_paths = NULL;
	*ret_n = 0;
	if (dir) {
		(void)TAKE_FD(fd);
		read_names(dir, all_files, directory, arena, ret_paths, ret_n);
	} else if (errno != ENOENT) {
		graft_warn(log, "the directory of CSV files %s is left out: %s", directory, strerror(errno));
	}
	/* SPEC 9.1: the usual ones, wherever the directory is. */
	for (size_t i = *ret_n > 0 ? GRAFT_COUNT(base_names) : 0; i < GRAFT_COUNT(base_names); i++) {
		const char *path = graft_arena_printf(arena, "%s/%s", GRAFT_CSV_DIRECTORY, base_names[i]);

		if (path)
			(void)graft_arena_push_string(arena, ret_paths, ret_n, path);
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
