/* SPDX-License-Identifier: Apache-2.0 */
/* read: regular files alone by descriptor, also pipes and devices where a user names them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/read.h"

struct feed {
	int fd;
	const char *text;
};

/* Writes a byte at a time, so that a single read cannot be enough. */
static void *write_feed(void *argument)
{
	const struct feed *feed = argument;

	for (const char *c = feed->text; *c; c++)
		assert_int_equal(write(feed->fd, c, 1), 1);
	(void)close(feed->fd);
	return NULL;
}

static void test_pipes_are_read_to_their_end(void **state)
{
	struct graft_arena *arena = graft_arena_new(SIZE_MAX / 2);
	struct feed feed = { .text = "all of it" };
	const char *bytes;
	char path[32];
	size_t length;
	pthread_t writer;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	feed.fd = fds[1];
	(void)snprintf(path, sizeof(path), "/dev/fd/%d", fds[0]);
	assert_true(graft_is_stream(path));
	assert_int_equal(graft_read_fd(fds[0], 100, arena, &bytes, &length), -EINVAL);
	assert_int_equal(pthread_create(&writer, NULL, write_feed, &feed), 0);
	assert_int_equal(graft_read_input(path, 9, arena, &bytes, &length), 0);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(length, 9);
	assert_string_equal(bytes, "all of it");
	(void)close(fds[0]);
	(void)graft_arena_free(arena);
}

static void test_standard_input(void **state)
{
	struct graft_arena *arena = graft_arena_new(SIZE_MAX / 2);
	int before = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), fds[2];
	const char *bytes;
	size_t length;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_int_equal(graft_read_input("-", 100, arena, &bytes, &length), 0);
	assert_string_equal(bytes, "x");
	/* It stays open. */
	assert_int_equal(graft_read_input("-", 100, arena, &bytes, &length), 0);
	assert_int_equal(length, 0);
	if (before >= 0) {
		assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
		(void)close(before);
	}
	assert_string_equal(graft_input_name("-"), "standard input");
	assert_string_equal(graft_input_name("./-"), "./-");
	(void)graft_arena_free(arena);
}

static void test_what_cannot_be_read(void **state)
{
	static const struct {
		const char *path;
		int rc;
		bool is_stream;
	} rows[] = {
		{ "/proc/self/nowhere", -ENOENT, false },
		{ "/proc", -EISDIR, false },
		{ "/dev/zero", -EFBIG, true },
		{ "/dev/null", 0, true },
		{ "/proc/self/status", -EFBIG, false },
		{ "/proc/self/oom_score_adj", 0, false },
	};
	struct graft_arena *arena = graft_arena_new(SIZE_MAX / 2);
	const char *bytes;
	size_t length;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(graft_read_input(rows[i].path, 20, arena, &bytes, &length), rows[i].rc);
		assert_int_equal(graft_is_stream(rows[i].path), rows[i].is_stream);
	}
	(void)graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipes_are_read_to_their_end),
		cmocka_unit_test(test_standard_input),
		cmocka_unit_test(test_what_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
