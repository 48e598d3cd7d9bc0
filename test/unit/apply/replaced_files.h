/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replaced_files: shared by the tests of files that are replaced with rename. Link with
 * -Wl,--wrap=linkat, and include this file after cmocka.h, in exactly one source file of the
 * program.
 */
#ifndef GRAFT_TEST_REPLACED_FILES_H
#define GRAFT_TEST_REPLACED_FILES_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"

int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);

static bool no_links; /* simulates a host without /proc or a file system without O_TMPFILE */

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	if (no_links) {
		errno = ENOENT;
		return -1;
	}
	return __real_linkat(from_fd, from, to_fd, to, flags);
}

static void put_file(const char *path, const char *text, size_t length)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, length), length);
}

static inline int n_files(const char *directory)
{
	auto_dir DIR *dir = opendir(directory);
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	return n;
}

static void remove_directory(const char *directory)
{
	auto_dir DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[512];

	while (dir && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (unlink(path) < 0)
			remove_directory(path);
	}
	assert_int_equal(rmdir(directory), 0);
}

static void assert_content(const char *path, const char *expected)
{
	char text[64] = "";
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, expected);
}

static struct stat stat_of(const char *path)
{
	struct stat st = { .st_ino = 0 };

	assert_int_equal(lstat(path, &st), 0);
	return st;
}

#endif
