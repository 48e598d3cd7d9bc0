/* SPDX-License-Identifier: Apache-2.0 */
/* folder: fills and lists the directory of a test, and removes it with all that is in it, without a shell. */
#ifndef TEST_UNIT_FOLDER_H
#define TEST_UNIT_FOLDER_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "unit.h"

static inline int test_remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

/* Removes path and everything below it that is on the same mount; returns 0, else another number. */
static inline int test_remove_folder(const char *path)
{
	return nftw(path, test_remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Makes the directories on the way to a path below the directory `at`. */
static inline void test_make_parents(int at, const char *path)
{
	char parent[1024];

	(void)snprintf(parent, sizeof(parent), "%s", path);
	for (char *slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdirat(at, parent, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

/* Writes a file below the directory `at`, and makes the directories on the way. */
static inline void test_put_bytes(int at, const char *path, const void *bytes, size_t n)
{
	auto_close int fd = -1;

	test_make_parents(at, path);
	fd = openat(at, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
}

static inline void test_put(int at, const char *path, const char *text)
{
	test_put_bytes(at, path, text, strlen(text));
}

/* How many names a directory has. */
static inline int test_count_names(const char *path)
{
	auto_dir DIR *directory = opendir(path);
	int n = -2;

	assert_non_null(directory);
	while (readdir(directory))
		n++;
	return n;
}

static inline int test_count_fds(void)
{
	return test_count_names("/proc/self/fd");
}

#endif
