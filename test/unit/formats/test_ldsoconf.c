/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folder.h"
#include "../image_root.h"
#include "../unit.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "formats/loader/ldsoconf.h"

#define SYSTEM "/lib64 /usr/lib64 /lib /usr/lib /libx32 /usr/libx32"

struct fixture {
	char dir[64];
	int fd;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	(void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/ldsoconf.XXXXXX");
	if (!mkdtemp(fixture->dir))
		return -1;
	fixture->fd = open(fixture->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)mkdirat(fixture->fd, "etc", 0755);
	(void)mkdirat(fixture->fd, "etc/ld.so.conf.d", 0755);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "etc/ld.so.conf",
					     "etc/ld.so.conf.d/a.conf",
					     "etc/ld.so.conf.d/b.conf",
					     "etc/ld.so.conf.d/c",
					     "etc/ld.so.conf.d/.h.conf",
					     "etc/ld.so.conf.d/00-graft.conf",
					     "etc/ld.so.conf.d/00-compat-graft.conf" };
	struct fixture *fixture = *state;

	for (size_t i = 0; i < GRAFT_COUNT(names); i++)
		(void)unlinkat(fixture->fd, names[i], 0);
	(void)unlinkat(fixture->fd, "etc/ld.so.conf.d", AT_REMOVEDIR);
	(void)unlinkat(fixture->fd, "etc", AT_REMOVEDIR);
	(void)rmdir(fixture->dir);
	(void)close(fixture->fd);
	free(fixture);
	return 0;
}

static void put_lines(const struct fixture *fixture, const char *name, const char *line, size_t n)
{
	size_t length = strlen(line);
	auto_free char *text = calloc(n + 1, length);

	assert_non_null(text);
	for (size_t i = 0; i < n; i++)
		memcpy(text + i * length, line, length);
	test_put(fixture->fd, name, text);
}

static void join(char *text, size_t size, const char *const *dirs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t used = strlen(text);

		(void)snprintf(text + used, size - used, "%s%s", i > 0 ? " " : "", dirs[i]);
	}
}

/* The directories, separated by blanks, or the error; with `added` those of Graft's own file apart. */
static void expect_apart(const struct fixture *fixture, const char *expected, const char *added)
{
	struct graft_arena *arena = graft_arena_new(1 << 24);
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	auto_test_image_root struct graft_image_root image = GRAFT_IMAGE_ROOT_INIT;
	struct graft_ldsoconf conf = { .n_dirs = 0 };
	struct graft_error err = { 0 };
	char text[4096] = "", added_text[4096] = "";
	int rc;

	assert_int_equal(graft_root_open(&root, fixture->dir, &err), 0);
	assert_int_equal(test_image_root_open(&image, fixture->dir), 0);
	rc = added ? graft_ldsoconf_read_image(&image, true, NULL, arena, &conf, &err)
		   : graft_ldsoconf_read(&root, arena, &conf.dirs, &conf.n_dirs, &err);
	if (rc < 0) {
		conf = (struct graft_ldsoconf){ .n_dirs = 0 };
		(void)snprintf(text, sizeof(text), "%s", err.msg);
		assert_int_equal(err.status, GRAFT_TOO_BIG);
	}
	join(text, sizeof(text), conf.dirs, conf.n_dirs);
	join(added_text, sizeof(added_text), conf.added, conf.n_added);
	assert_string_equal(text, expected);
	assert_string_equal(added_text, added ? added : "");
	graft_arena_free(arena);
}

static void expect(const struct fixture *fixture, const char *expected)
{
	expect_apart(fixture, expected, NULL);
}

static void test_lines(void **state)
{
	struct fixture *fixture = *state;

	expect(fixture, SYSTEM);
	test_put(fixture->fd, "etc/ld.so.conf",
		 "# comment\n  /opt/a/  # why\n\nrelative\n/opt/b=libc6\nhwcap 1 x\n\t/opt/with blank\n/opt/last");
	expect(fixture, "/opt/a /opt/b /opt/with blank /opt/last " SYSTEM);
}

static void test_includes_in_place_and_sorted(void **state)
{
	struct fixture *fixture = *state;

	test_put(fixture->fd, "etc/ld.so.conf", "/first\ninclude /etc/ld.so.conf.d/*.conf  ld.so.conf.d/c\n/last\n");
	test_put(fixture->fd, "etc/ld.so.conf.d/b.conf", "/b\n");
	test_put(fixture->fd, "etc/ld.so.conf.d/a.conf", "/a\n");
	test_put(fixture->fd, "etc/ld.so.conf.d/.h.conf", "/hidden\n");
	test_put(fixture->fd, "etc/ld.so.conf.d/c", "/c\n");
	expect(fixture, "/first /a /b /c /last " SYSTEM);
}

/* Graft's own file is known by its name, by whatever words it is included. What the hook enable-cuda-compat writes is another. */
static void test_own_file_apart(void **state)
{
	static const char *const ways[] = {
		"include /etc/ld.so.conf.d/*.conf\n", "include ld.so.conf.d/00-*\n",
		"include /etc/./ld.so.conf.d//00-compat-graft.conf //etc/ld.so.conf.d/*-graft.conf\n",
		"include ld.so.conf.d/00-compat-graft.conf " GRAFT_LDSOCONF_OWN "\n"
	};
	struct fixture *fixture = *state;

	test_put(fixture->fd, "etc/ld.so.conf.d/00-graft.conf", "# comment\n/opt/driver\n/both/\n");
	test_put(fixture->fd, "etc/ld.so.conf.d/00-compat-graft.conf", "/compat\n");
	for (size_t i = 0; i < GRAFT_COUNT(ways); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text), "%s/both\n", ways[i]);
		test_put(fixture->fd, "etc/ld.so.conf", text);
		expect_apart(fixture, i == 2 ? "/compat /compat /both " SYSTEM : "/compat /both " SYSTEM,
			     "/opt/driver /both");
		if (i != 2)
			expect(fixture, "/compat /opt/driver /both /both " SYSTEM);
	}
	test_put(fixture->fd, "etc/ld.so.conf.d/00-graft.conf", "# comment\n");
	expect_apart(fixture, "/compat /both " SYSTEM, "");
	/* Whose line it is when files are nested: that of the file in which it stands. */
	test_put(fixture->fd, "etc/ld.so.conf.d/00-graft.conf", "/opt/driver\ninclude a.conf\n/opt/last\n");
	test_put(fixture->fd, "etc/ld.so.conf.d/a.conf", "/a\n");
	expect_apart(fixture, "/compat /a /both " SYSTEM, "/opt/driver /opt/last");
}

/* As many lines as there may be, wherever they stand. */
static void test_too_many_directories(void **state)
{
	struct fixture *fixture = *state;

	test_put(fixture->fd, "etc/ld.so.conf", "include " GRAFT_LDSOCONF_OWN "\n/one\n");
	put_lines(fixture, "etc/ld.so.conf.d/00-graft.conf", "/x\n", 4096);
	expect(fixture, "more than 4096 directories in /etc/ld.so.conf");
	expect_apart(fixture, "more than 4096 directories in /etc/ld.so.conf", "");
}

static void test_hostile(void **state)
{
	struct fixture *fixture = *state;
	auto_close int fd = -1;

	test_put(fixture->fd, "etc/ld.so.conf", "include ld.so.conf\n");
	expect(fixture, "too many included files: /etc/ld.so.conf");
	test_put(fixture->fd, "etc/ld.so.conf", "include /proc/self/fd/0 ../../../../etc/shadow / ///\ninclude\n/ok\n");
	expect(fixture, "/ok " SYSTEM);
	/* A pipe must not block, a huge file must not be read. */
	assert_int_equal(mkfifoat(fixture->fd, "etc/ld.so.conf.d/a.conf", 0644), 0);
	test_put(fixture->fd, "etc/ld.so.conf", "include ld.so.conf.d/*.conf\n/ok\n");
	expect(fixture, "/ok " SYSTEM);
	fd = openat(fixture->fd, "etc/ld.so.conf.d/b.conf", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	expect(fixture, "file read error: /etc/ld.so.conf.d/b.conf");
}

/* One line with more patterns than anybody needs must not read the directory that often. */
static void test_many_patterns(void **state)
{
	static const char word[] = " ld.so.conf.d/*.x";
	struct fixture *fixture = *state;
	char text[8 + 65 * sizeof(word)] = "include";

	for (int i = 0; i < 64; i++)
		(void)strncat(text, word, sizeof(text) - strlen(text) - 1);
	test_put(fixture->fd, "etc/ld.so.conf", text);
	expect(fixture, SYSTEM);
	(void)strncat(text, word, sizeof(text) - strlen(text) - 1);
	test_put(fixture->fd, "etc/ld.so.conf", text);
	expect(fixture, "too many included files: /etc/ld.so.conf.d/*.x");
}

/* As much of `line` again and again as fits into 640 KiB. */
static void put_repeated(const struct fixture *fixture, const char *name, const char *line)
{
	put_lines(fixture, name, line, ((size_t)640 << 10) / strlen(line));
}

/* What is cheap to repeat: patterns that match nothing, each of which reads a directory, and files that are large together. */
static void test_bombs(void **state)
{
	struct fixture *fixture = *state;

	put_repeated(fixture, "etc/ld.so.conf", "include /etc/*none\n");
	expect(fixture, "too many included files: /etc/*none");
	put_repeated(fixture, "etc/ld.so.conf", "include /none/*\n");
	expect(fixture, "too many included files: /none/*");
	test_put(fixture->fd, "etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
	put_repeated(fixture, "etc/ld.so.conf.d/a.conf", "# nothing\n");
	expect(fixture, SYSTEM);
	put_repeated(fixture, "etc/ld.so.conf.d/b.conf", "# nothing\n");
	expect(fixture, "file read error: /etc/ld.so.conf.d/b.conf");
}

static void test_built_in(void **state)
{
	assert_true(graft_ldsoconf_is_built_in("/lib64"));
	assert_true(graft_ldsoconf_is_built_in("/usr/lib"));
	assert_false(graft_ldsoconf_is_built_in("/usr/lib/x86_64-linux-gnu"));
	assert_false(graft_ldsoconf_is_built_in(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_includes_in_place_and_sorted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_own_file_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many_directories, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_patterns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bombs, set_up, tear_down),
		cmocka_unit_test(test_built_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
