/* SPDX-License-Identifier: Apache-2.0 */
/* dev_char: makes links that are missing or from an earlier driver, and leaves all others alone. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "apply/dev_char.h"
#include "apply/temporary.h"
#include "base/cleanup.h"

struct fixture {
	char top[64];
	char directory[80];
	struct graft_log log;
	unsigned int n_warnings, n_infos;
	char last[512];
};

static void note(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct fixture *f = arg;

	f->n_warnings += level == GRAFT_LOG_WARN;
	f->n_infos += level == GRAFT_LOG_INFO;
	(void)snprintf(f->last, sizeof(f->last), "%s", message);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->top, sizeof(f->top), "/tmp/graft-dev-char.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	(void)snprintf(f->directory, sizeof(f->directory), "%s/char", f->top);
	f->log = (struct graft_log){ .write = note, .arg = f, .max = GRAFT_LOG_INFO };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(test_remove_folder(f->top), 0);
	free(f);
	return 0;
}

static int make_in(const struct fixture *f, const char *directory, const struct graft_dev_char *nodes, size_t n,
		   struct graft_error *err)
{
	const struct graft_dev_char_options options = { .directory = directory, .log = &f->log };

	return graft_dev_char_make_with(&options, nodes, n, err);
}

static void check_link(const struct fixture *f, const char *name, const char *want)
{
	char path[128], text[PATH_MAX];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	n = readlink(path, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, want);
}

static void put_link(const struct fixture *f, const char *name, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	assert_int_equal(symlink(text, path), 0);
}

static void test_made(void **state)
{
	static const struct graft_dev_char nodes[] = {
		{ 195, 0, "/dev/nvidia0" },
		{ 235, 1, "/dev/nvidia-caps/nvidia-cap1" },
		{ 195, 255, "/run/nvidia/driver/dev/nvidiactl" },
	};
	struct fixture *f = *state;

	assert_int_equal(make_in(f, f->directory, nodes, GRAFT_COUNT(nodes), NULL), 3);
	check_link(f, "195:0", "../nvidia0");
	check_link(f, "235:1", "../nvidia-caps/nvidia-cap1");
	check_link(f, "195:255", "/run/nvidia/driver/dev/nvidiactl");
	assert_int_equal(f->n_infos, 3);
	assert_int_equal(f->n_warnings, 0);
	/* An existing directory is used. */
	assert_int_equal(make_in(f, f->directory, nodes, 0, NULL), 0);
}

/* /dev/null and /dev/zero exist on every machine. */
static void test_existing(void **state)
{
	static const struct graft_dev_char node = { 1, 3, "/dev/null" };
	static const struct {
		const char *name, *text;
		int made;
	} cases[] = {
		{ "right in other words", "/dev/null", 0 },
		{ "leads nowhere", "../no-such-node", 1 },
		{ "leads to another device", "/dev/zero", 1 },
		{ "leads to a directory", "/", 1 },
	};
	struct fixture *f = *state;

	assert_int_equal(mkdir(f->directory, 0755), 0);
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		char path[128];

		print_message("# %s\n", cases[i].name);
		(void)snprintf(path, sizeof(path), "%s/1:3", f->directory);
		(void)unlink(path);
		put_link(f, "1:3", cases[i].text);
		assert_int_equal(make_in(f, f->directory, &node, 1, NULL), cases[i].made);
		check_link(f, "1:3", cases[i].made > 0 ? "../null" : cases[i].text);
	}
}

static void test_node_of_its_own(void **state)
{
	static const struct graft_dev_char node = { 1, 3, "/dev/null" };
	struct fixture *f = *state;
	char path[128];

	/* Anything but a link is not ours to replace. */
	assert_int_equal(mkdir(f->directory, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/1:3", f->directory);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(make_in(f, f->directory, &node, 1, NULL), 0);
	assert_int_equal(f->n_warnings, 1);
	assert_int_equal(rmdir(path), 0);
}

/* Records reported links as "LINK => TEXT;". */
static void tell(void *arg, const char *link, const char *text)
{
	char *told = arg;
	size_t length = strlen(told);

	(void)snprintf(told + length, 1024 - length, "%s => %s;", link, text);
}

/* Reads a link until the other thread has replaced it often enough. Counts when it was not there. */
static void *watch_link(void *argument)
{
	const char *path = argument;
	char text[8];
	size_t n_missing = 0;

	for (int i = 0; i < 2000; i++)
		n_missing += readlink(path, text, sizeof(text)) < 0;
	return (void *)n_missing;
}

static void test_link_is_always_there(void **state)
{
	const struct fixture *f = *state;
	char path[128];
	pthread_t watcher;
	void *n_missing;
	int fd;

	assert_int_equal(mkdir(f->directory, 0755), 0);
	fd = open(f->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	(void)snprintf(path, sizeof(path), "%s/1:3", f->directory);
	assert_int_equal(graft_link_replace(fd, "1:3", "../first"), 0);
	assert_int_equal(pthread_create(&watcher, NULL, watch_link, path), 0);
	for (int i = 0; i < 500; i++)
		assert_int_equal(graft_link_replace(fd, "1:3", i % 2 ? "../a" : "../b"), 0);
	assert_int_equal(pthread_join(watcher, &n_missing), 0);
	assert_null(n_missing);
	assert_int_equal(graft_link_replace(fd, ".", "x"), -EBUSY);
	(void)close(fd);
	/* Nothing temporary is left. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(f->directory), 0);
}

static void test_absolute(void **state)
{
	static const struct graft_dev_char nodes[] = { { 1, 3, "/dev/null" }, { 195, 0, "/dev/nvidia0" } };
	struct fixture *f = *state;
	char told[1024] = "", expected[1024];
	struct graft_dev_char_options options = { .directory = f->directory,
						  .absolute = true,
						  .dry_run = true,
						  .making = tell,
						  .arg = told,
						  .log = &f->log };

	(void)snprintf(expected, sizeof(expected), "%s/1:3 => /dev/null;%s/195:0 => /dev/nvidia0;", f->directory,
		       f->directory);
	/* A dry run reports every link and makes nothing, not even the directory. */
	assert_int_equal(graft_dev_char_make_with(&options, nodes, 2, NULL), 2);
	assert_string_equal(told, expected);
	assert_int_equal(access(f->directory, F_OK), -1);
	options.dry_run = false;
	told[0] = '\0';
	assert_int_equal(graft_dev_char_make_with(&options, nodes, 2, NULL), 2);
	assert_string_equal(told, expected);
	check_link(f, "1:3", "/dev/null");
	check_link(f, "195:0", "/dev/nvidia0");
	/*
	 * A second run: the target of the second link is not visible here, but its text is right.
	 */
	told[0] = '\0';
	assert_int_equal(graft_dev_char_make_with(&options, nodes, 2, NULL), 0);
	assert_string_equal(told, "");
	/* A dry run with a link that is wrong. */
	options.dry_run = true;
	assert_int_equal(
	    graft_dev_char_make_with(&options, (const struct graft_dev_char[]){ { 195, 0, "/dev/nvidia7" } }, 1, NULL),
	    1);
	check_link(f, "195:0", "/dev/nvidia0");
	assert_int_equal(f->n_infos + f->n_warnings, 0);
}

static void test_failures(void **state)
{
	static char long_path[PATH_MAX + 64];
	struct graft_dev_char nodes[] = { { 1, 5, NULL }, { 1, 3, "/dev/null" } };
	struct fixture *f = *state;
	struct graft_error err = { .status = GRAFT_OK };
	char nowhere[128];

	memset(long_path, 'x', sizeof(long_path) - 1);
	memcpy(long_path, "/dev/", 5);
	nodes[0].path = long_path;
	/* A link that cannot be made does not stop the next one. */
	assert_int_equal(make_in(f, f->directory, nodes, 2, &err), 1);
	assert_int_equal(f->n_warnings, 1);
	check_link(f, "1:3", "../null");

	(void)snprintf(nowhere, sizeof(nowhere), "%s/missing/char", f->top);
	assert_int_equal(make_in(f, nowhere, nodes, 2, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	(void)snprintf(nowhere, sizeof(nowhere), "%s/char/1:3", f->top);
	assert_int_equal(make_in(f, nowhere, nodes, 2, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_made, setup, teardown),
		cmocka_unit_test_setup_teardown(test_existing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_node_of_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_link_is_always_there, setup, teardown),
		cmocka_unit_test_setup_teardown(test_absolute, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
