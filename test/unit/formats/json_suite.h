/* SPDX-License-Identifier: Apache-2.0 */
/* json_suite: the files of a public suite; those of names with y are to be accepted, with n refused, with i either. */
#ifndef GRAFT_TEST_JSON_SUITE_H
#define GRAFT_TEST_JSON_SUITE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/read.h"

#define SUITE "../shared/conformance/json-test"

/* Without the suite, the test is skipped by its name. */
static inline void json_suite_each(void (*check)(const char *name, const char *bytes, size_t length))
{
	const char *source_root = getenv("GRAFT_SOURCE_ROOT");
	char path[4096];
	auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int n = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", source_root ? source_root : ".", SUITE);
	dir = opendir(path);
	if (!dir) {
		print_message("# SKIP: json-conformance-suite: %s is not there\n", SUITE);
		skip();
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		struct graft_arena *arena;
		const char *bytes;
		size_t length;
		auto_close int fd = -1;

		if (!strstr(entry->d_name, ".json"))
			continue;
		arena = graft_arena_new(1 << 20);
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		assert_int_equal(graft_read_fd(fd, 1 << 20, arena, &bytes, &length), 0);
		check(entry->d_name, bytes, length);
		n++;
		graft_arena_free(arena);
	}
	assert_true(n > 250);
}

#endif
