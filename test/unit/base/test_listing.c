/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of no, few and many names, and the limits of both. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "base/listing.h"

#define MANY 700 /* more than one answer of the kernel */

struct fixture {
	char top[64];
	struct graft_root root;
	struct graft_arena *arena;
};

static void put(const struct fixture *f, const char *path)
{
	auto_close int fd = openat(f->root.fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->top, sizeof(f->top), "/tmp/graft-listing.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	assert_int_equal(graft_root_open(&f->root, f->top, NULL), 0);
	f->arena = graft_arena_new(1 << 20);
	assert_non_null(f->arena);
	assert_int_equal(mkdirat(f->root.fd, "empty", 0755), 0);
	assert_int_equal(mkdirat(f->root.fd, "few", 0755), 0);
	assert_int_equal(mkdirat(f->root.fd, "many", 0755), 0);
	put(f, "few/b");
	put(f, "few/.hidden");
	put(f, "few/...");
	assert_int_equal(mkdirat(f->root.fd, "few/a", 0755), 0);
	assert_int_equal(symlinkat("nowhere", f->root.fd, "few/B"), 0);
	for (int i = 0; i < MANY; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "many/%05d-%.*s", (i * 7919) % MANY, i % 40,
			       "a name of another length for each of them");
		put(f, name);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	graft_root_close(&f->root);
	graft_arena_free(f->arena);
	assert_int_equal(test_remove_folder(f->top), 0);
	free(f);
	return 0;
}

static void test_names(void **state)
{
	static const char *const want[] = { "...", ".hidden", "B", "a", "b" };
	struct fixture *f = *state;
	const char **names;
	bool more = true;
	size_t n;

	assert_int_equal(graft_root_list(&f->root, "/few", 100, f->arena, &names, &n, &more), 0);
	assert_false(more);
	assert_int_equal(n, GRAFT_COUNT(want));
	for (size_t i = 0; i < n; i++)
		assert_string_equal(names[i], want[i]);
	assert_int_equal(graft_root_list(&f->root, "/empty", 100, f->arena, &names, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(graft_root_list(&f->root, "/many", 100000, f->arena, &names, &n, &more), 0);
	assert_false(more);
	assert_int_equal(n, MANY);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(strtol(names[i], NULL, 10), i); /* all of them, and sorted */
}

static void test_limits(void **state)
{
	struct fixture *f = *state;
	const char **names;
	bool more;
	size_t n;

	for (size_t max = 0; max < 8; max++) {
		assert_int_equal(graft_root_list(&f->root, "/few", max, f->arena, &names, &n, &more), 0);
		assert_int_equal(n, max < 5 ? max : 5);
		assert_int_equal(more, max < 5);
	}
	assert_int_equal(graft_root_list(&f->root, "/many", MANY - 1, f->arena, &names, &n, &more), 0);
	assert_int_equal(n, MANY - 1);
	assert_true(more);
	assert_int_equal(graft_root_list(&f->root, "/none", 10, f->arena, &names, &n, &more), -ENOENT);
	assert_int_equal(n, 0);
	assert_int_equal(graft_root_list(&f->root, "/few/b", 10, f->arena, &names, &n, &more), -ENOTDIR);
	assert_int_equal(graft_list_names(-1, 10, f->arena, &names, &n, &more), -EBADF);
}

static void test_no_memory(void **state)
{
	struct fixture *f = *state;
	const char **names;
	size_t n;

	for (size_t max = 1; max < 160; max += 8) {
		struct graft_arena *small = graft_arena_new(max);

		/* Five short names and a list of them. */
		assert_int_equal(graft_root_list(&f->root, "/few", 100, small, &names, &n, NULL), -ENOMEM);
		graft_arena_free(small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
