/* SPDX-License-Identifier: Apache-2.0 */
/* csv_lists: selects the lists in the directory to use (SPEC runtime-and-hook 9.1). */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/strings.h"
#include "host/csv.h"

/*
 * The lists of the base system. All others belong to libraries that newer images ship themselves.
 */
static const char *const base_names[] = { "devices.csv", "drivers.csv", "l4t.csv" };

static bool is_list_name(const char *name, bool all_files)
{
	size_t length = strlen(name);

	if (graft_is_in(base_names, GRAFT_COUNT(base_names), name))
		return true;
	return all_files && length > 4 && strcasecmp(name + length - 4, ".csv") == 0;
}

static int read_csv_list_names(int fd, bool all_files, const char *directory, struct graft_arena *arena,
			       const char ***ret_paths, size_t *ret_n)
{
	const char **names;
	size_t n;
	struct stat st;
	int rc = graft_list_names(fd, SIZE_MAX, arena, &names, &n, NULL);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (!is_list_name(names[i], all_files) || fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		(void)graft_arena_push_string(arena, ret_paths, ret_n,
					      graft_arena_printf(arena, "%s/%s", directory, names[i]));
	}
	return rc;
}

int graft_csv_lists(const char *directory, bool all_files, const struct graft_log *log, struct graft_arena *arena,
		    const char ***ret_paths, size_t *ret_n, struct graft_error *err)
{
	auto_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	int rc;

	*ret_paths = NULL;
	*ret_n = 0;
	rc = fd < 0 ? -errno : read_csv_list_names(fd, all_files, directory, arena, ret_paths, ret_n);
	if (rc < 0 && rc != -ENOENT)
		graft_warn(log, "skipping the directory of CSV files %s: %s", directory, strerror(-rc));
	/* SPEC runtime-and-hook 9.1: the standard paths, regardless of the configured directory. */
	for (size_t i = *ret_n > 0 ? GRAFT_COUNT(base_names) : 0; i < GRAFT_COUNT(base_names); i++)
		(void)graft_arena_push_string(arena, ret_paths, ret_n,
					      graft_arena_printf(arena, "%s/%s", GRAFT_CSV_DIRECTORY, base_names[i]));
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
