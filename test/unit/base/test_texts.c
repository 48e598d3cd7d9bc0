/* SPDX-License-Identifier: Apache-2.0 */
/* Files of an untrusted root that were read before, and those that have changed since. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "base/texts.h"

struct fixture {
	char top[64];
	struct graft_root root;
	struct graft_arena *arena;
	struct graft_texts *texts;
	int proc_fd;
};

static void put(const struct fixture *f, const char *path, const char *text)
{
	auto_close int fd = openat(f->root.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->top, sizeof(f->top), "/tmp/graft-texts.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	graft_root_take(&f->root, open(f->top, O_PATH | O_DIRECTORY | O_CLOEXEC));
	f->proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	f->root.proc_fd = f->proc_fd;
	f->root.texts = f->texts = graft_texts_new();
	f->arena = graft_arena_new(1 << 20);
	assert_true(f->root.fd >= 0 && f->texts && f->arena);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	graft_root_close(&f->root);
	(void)close(f->proc_fd);
	graft_arena_free(f->arena);
	graft_texts_free(f->texts);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->top);
	assert_int_equal(system(command), 0); /* a test's own directory */
	free(f);
	return 0;
}

static void check(const struct fixture *f, const char *path, const char *want)
{
	const char *bytes;
	size_t length;

	assert_int_equal(graft_root_read(&f->root, path, 1 << 20, f->arena, &bytes, &length), 0);
	assert_int_equal(length, strlen(want));
	assert_string_equal(bytes, want);
}

static bool is_remembered(const struct fixture *f, const char *path)
{
	const char *bytes;
	struct stat st;
	size_t length;

	assert_int_equal(fstatat(f->root.fd, path, &st, 0), 0);
	return graft_texts_find(f->texts, &st, &bytes, &length);
}

static void test_again(void **state)
{
	struct fixture *f = *state;
	const char *bytes, *first;
	size_t length;

	put(f, "a", "one");
	put(f, "b", "two");
	check(f, "/a", "one");
	check(f, "/b", "two");
	assert_true(is_remembered(f, "a"));
	/* Whoever changes what was read changes its own copy. */
	assert_int_equal(graft_root_read(&f->root, "/a", 100, f->arena, &first, &length), 0);
	memcpy((char *)(uintptr_t)first, "xxx", 3);
	check(f, "/a", "one");
	/* By another name, too; and the limit of who asks counts. */
	assert_int_equal(linkat(f->root.fd, "a", f->root.fd, "c", 0), 0);
	check(f, "/c", "one");
	assert_int_equal(graft_root_read(&f->root, "/a", 2, f->arena, &bytes, &length), -EFBIG);
	assert_int_equal(graft_root_read(&f->root, "/a", 3, f->arena, &bytes, &length), 0);
}

static void test_changed(void **state)
{
	const struct timespec past[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct fixture *f = *state;

	put(f, "a", "one");
	assert_int_equal(utimensat(f->root.fd, "a", past, 0), 0);
	check(f, "/a", "one");
	/* The same length, and another time. */
	put(f, "a", "two");
	assert_false(is_remembered(f, "a"));
	check(f, "/a", "two");
	/* Another file in its place. */
	put(f, "new", "six");
	assert_int_equal(renameat(f->root.fd, "new", f->root.fd, "a"), 0);
	assert_false(is_remembered(f, "a"));
	check(f, "/a", "six");
	/* Something that must not be opened, whatever it was before. */
	assert_int_equal(unlinkat(f->root.fd, "a", 0), 0);
	assert_int_equal(mkfifoat(f->root.fd, "a", 0644), 0);
	assert_int_equal(graft_root_read(&f->root, "/a", 100, f->arena, &(const char *){ NULL }, &(size_t){ 0 }),
			 -EINVAL);
}

static void test_not_remembered(void **state)
{
	struct fixture *f = *state;
	static char large[(64 << 10) + 2];
	char name[16];

	memset(large, 'x', sizeof(large) - 1);
	put(f, "large", large);
	check(f, "/large", large);
	assert_false(is_remembered(f, "large"));
	for (int i = 0; i < 70; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		put(f, name, name);
		check(f, name, name);
		assert_int_equal(is_remembered(f, name), i < 64);
		check(f, name, name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_remembered, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
