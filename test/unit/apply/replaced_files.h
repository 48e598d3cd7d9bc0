/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replaced_files: shared by the tests of files that are replaced with rename. Link with
 * -Wl,--wrap=linkat, and include this file after cmocka.h, in exactly one source file of the
 * program.
 */
#ifndef GRAFT_TEST_REPLACED_FILES_H
#define GRAFT_TEST_REPLACED_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folder.h"
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
