/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "fixture.h"
#include "host/lookup.h"
#include "host/survey.h"

/* Names in a tree with links of all kinds, and where they must lead. */
static void test_links(void **state)
{
	static const struct {
		const char *path;
		int rc;
		const char *resolved;
	} rows[] = {
		{ "/lib/plain.so.1", 0, "/lib/plain.so.1" },
		{ "/lib/a.so", 0, "/lib/plain.so.1" },               /* a chain of siblings */
		{ "/lib/debian.so.1", 0, "/usr/current/real.so.9" }, /* by way of /etc/alternatives, as Debian does */
		{ "/lib/up.so.1", 0, "/usr/current/real.so.9" },
		{ "/linked/plain.so.1", 0, "/lib/plain.so.1" }, /* a directory that is a link */
		{ "/lib/out.so.1", -ENOENT, NULL },             /* above the root is the root */
		{ "/lib/loop.so.1", -ELOOP, NULL },
		{ "/lib/self.so.1", -ELOOP, NULL },
		{ "/lib/dangling.so.1", -ENOENT, NULL },
		{ "/lib/none.so.1", -ENOENT, NULL },
		{ "/none/plain.so.1", -ENOENT, NULL },
		{ "/lib/plain.so.1/x", -ENOTDIR, NULL },
		{ "relative", -EINVAL, NULL },
		{ "/lib/", -EINVAL, NULL },
	};
	struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_lookup lookup;
	struct fixture fixture;
	int fds = test_count_fds();

	fixture_init(&fixture);
	fixture_write(&fixture, "/lib/plain.so.1", "x");
	fixture_link(&fixture, "b.so", "/lib/a.so");
	fixture_link(&fixture, "plain.so.1", "/lib/b.so");
	fixture_write(&fixture, "/usr/current/real.so.9", "x");
	fixture_link(&fixture, "/etc/alternatives/real", "/lib/debian.so.1");
	fixture_link(&fixture, "/usr/current/real.so.9", "/etc/alternatives/real");
	fixture_link(&fixture, "../usr/current/real.so.9", "/lib/up.so.1");
	fixture_link(&fixture, "lib", "/linked");
	fixture_link(&fixture, "../../../../../../../../etc/hostname", "/lib/out.so.1");
	fixture_link(&fixture, "loop2.so.1", "/lib/loop.so.1");
	fixture_link(&fixture, "loop.so.1", "/lib/loop2.so.1");
	fixture_link(&fixture, "self.so.1", "/lib/self.so.1");
	fixture_link(&fixture, "nothing", "/lib/dangling.so.1");
	assert_int_equal(graft_root_open(&root, fixture.root, NULL), 0);
	graft_lookup_init(&lookup, &root, arena);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *path = NULL;
		struct stat st;
		int rc = graft_lookup_path(&lookup, rows[i].path, &path, &st);

		if (rc != rows[i].rc)
			fail_msg("%s: %s instead of %s", rows[i].path, strerror(-rc), strerror(-rows[i].rc));
		if (rc == 0) {
			assert_string_equal(path, rows[i].resolved);
			assert_true(S_ISREG(st.st_mode));
			assert_int_equal(st.st_size, 1);
		}
	}
	assert_int_equal(lookup.shortage, 0);
	/* Each directory is remembered, found or not. */
	assert_ptr_equal(graft_lookup_directory(&lookup, "/lib", 4), graft_lookup_directory(&lookup, "/libxyz", 4));
	assert_int_equal(graft_lookup_directory(&lookup, "/none", 5)->fd, -ENOENT);
	graft_lookup_done(&lookup);
	graft_root_close(&root);
	(void)graft_arena_free(arena);
	fixture_done(&fixture);
	assert_int_equal(test_count_fds(), fds);
}

static void test_filelist(void **state)
{
	static const char list[] =
	    "[{\"name\": \"firmware/gsp_ga10x.bin\", \"type\": \"FIRMWARE\"},"
	    "{\"category\": [\"cuda\"], \"name\": \"libcuda.so.1\", \"more\": {\"a\": [1]}},"
	    "{\"name\": \"..\"}, {\"name\": \"\"}, {\"name\": 1}, {\"name\": \"x/\"}, {}, [], null, 7]";
	static const char *const bad[] = {
		"", "{}", "[", "[{\"name\": \"a\"}", "[] x", "null", "[[[[[[[[[[[[]]]]]]]]]]]]"
	};
	struct graft_arena *arena = graft_arena_new(1 << 20);
	const char **names;
	struct graft_error err;
	size_t n;

	assert_int_equal(graft_filelist_read(list, strlen(list), arena, &names, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(names[0], "gsp_ga10x.bin");
	assert_string_equal(names[1], "libcuda.so.1");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(graft_filelist_read(bad[i], strlen(bad[i]), arena, &names, &n, &err), -1);
		assert_int_equal(err.status, GRAFT_FORMAT);
	}
	assert_int_equal(graft_filelist_read("[]", 2, arena, &names, &n, &err), 0);
	assert_int_equal(n, 0);
	(void)graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_filelist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
