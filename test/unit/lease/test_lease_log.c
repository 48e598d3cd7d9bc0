/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a table: it is kept short, has whole lines, and whatever else is in its place is left alone. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../arena.h"
#include "../folder.h"
#include "base/cleanup.h"
#include "lease/lease_log.h"

static char directory[] = "/tmp/graft-lease-log-XXXXXX";
static int directory_fd = -1;

static int setup(void **state)
{
	memset(directory + sizeof(directory) - 7, 'X', 6);
	arena = graft_arena_new((size_t)16 << 20);
	if (!arena || !mkdtemp(directory))
		return -1;
	directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return directory_fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)close(directory_fd);
	(void)test_remove_folder(directory);
	arena = graft_arena_free(arena);
	return 0;
}

static void write_line(const char *text)
{
	struct graft_buffer line = { .max = 0 };

	graft_buffer_printf(&line, "%s\n", text);
	graft_lease_log_write(directory_fd, &line);
	graft_buffer_done(&line);
}

static void test_halved(void **state)
{
	struct graft_buffer lines = { .max = 0 };
	const char *text;
	struct stat st;

	/* One write may exceed the limit; the next one finds it so. */
	for (unsigned int i = 0; lines.length <= GRAFT_LEASE_LOG_MAX; i++)
		graft_buffer_printf(&lines, "%08u taken abcdefgh2345 uid 7 any:1 GPU-1 process 12\n", i);
	graft_lease_log_write(directory_fd, &lines);
	write_line("the newest");
	assert_int_equal(fstatat(directory_fd, GRAFT_LEASE_LOG, &st, 0), 0);
	assert_in_range(st.st_size, GRAFT_LEASE_LOG_MAX / 2 - 100, GRAFT_LEASE_LOG_MAX / 2 + 100);
	assert_int_equal(st.st_mode & 0777, 0644);
	text = graft_lease_log_read(directory, 2 * GRAFT_LEASE_LOG_MAX, arena);
	/* It begins with a whole line, and ends with the last two. */
	assert_int_equal(strcspn(text, " "), 8);
	assert_string_equal(text + strlen(text) - strlen("GPU-1 process 12\nthe newest\n"),
			    "GPU-1 process 12\nthe newest\n");
	/* Of a part of it only the whole lines. */
	assert_string_equal(graft_lease_log_read(directory, strlen("12\nthe newest\n"), arena), "the newest\n");
	graft_buffer_done(&lines);
}

static void test_no_log(void **state)
{
	char path[sizeof(directory) + 16], other[sizeof(directory) + 16];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/" GRAFT_LEASE_LOG, directory);
	(void)snprintf(other, sizeof(other), "%s/other", directory);
	assert_string_equal(graft_lease_log_read(directory, 100, arena), "");
	/* A FIFO does not keep us waiting. */
	assert_int_equal(mkfifo(path, 0644), 0);
	write_line("lost");
	assert_string_equal(graft_lease_log_read(directory, 100, arena), "");
	assert_int_equal(unlink(path), 0);
	/* A link is not followed. */
	assert_int_equal(symlink(other, path), 0);
	write_line("lost");
	assert_string_equal(graft_lease_log_read(directory, 100, arena), "");
	assert_int_equal(stat(other, &st), -1);
	assert_int_equal(unlink(path), 0);
	write_line("kept");
	assert_string_equal(graft_lease_log_read(directory, 100, arena), "kept\n");
}

/* What an image may choose is one word, and ends no line. */
static void test_log_words(void **state)
{
	struct graft_lease_slot slot = { "GPU-1", NULL };
	struct graft_lease lease = { .id = "abcdefgh2345", .claim = "any:1", .slots = &slot, .n_slots = 1, .uid = 7 };
	struct graft_buffer lines = { .max = 0 };

	lease.holder.container = "a b\n1 freed abcdefgh2345 uid 7 x";
	graft_lease_log_add(&lease, "taken", NULL, &lines);
	assert_ptr_equal(strchr(graft_buffer_text(&lines), '\n'), graft_buffer_text(&lines) + lines.length - 1);
	assert_null(strchr(
	    strstr(graft_buffer_text(&lines), GRAFT_LEASE_LOG_CONTAINER) + strlen(GRAFT_LEASE_LOG_CONTAINER), ' '));
	graft_buffer_done(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_halved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_log, setup, teardown),
		cmocka_unit_test(test_log_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
