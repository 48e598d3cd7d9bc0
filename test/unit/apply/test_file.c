/* SPDX-License-Identifier: Apache-2.0 */
/* file: whatever has the name is kept or replaced by a new inode; nothing is written through it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "apply/namespace/file.h"
#include "base/cleanup.h"

struct fixture {
	char top[64];
	int fd;
	struct graft_journal *journal;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->top, sizeof(f->top), "/tmp/graft-file.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	f->fd = open(f->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	f->journal = graft_journal_new(NULL);
	assert_non_null(f->journal);
	test_put(f->fd, "host", "host");
	assert_int_equal(fchmodat(f->fd, "host", 0600, 0), 0);
	assert_int_equal(linkat(f->fd, "host", f->fd, "hard", 0), 0);
	assert_int_equal(symlinkat("host", f->fd, "link"), 0);
	assert_int_equal(symlinkat("nowhere", f->fd, "dangling"), 0);
	assert_int_equal(mkfifoat(f->fd, "fifo", 0600), 0);
	assert_int_equal(mkdirat(f->fd, "directory", 0700), 0);
	(void)umask(0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	graft_journal_free(f->journal);
	(void)close(f->fd);
	assert_int_equal(test_remove_folder(f->top), 0);
	free(f);
	return 0;
}

static void check_file(struct fixture *f, const char *name, const char *want, mode_t mode)
{
	auto_close int fd = openat(f->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[64] = "";
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, mode);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, want);
}

static void check_link(struct fixture *f, const char *name, const char *want)
{
	char text[64] = "";

	assert_int_equal(readlinkat(f->fd, name, text, sizeof(text) - 1), strlen(want));
	assert_string_equal(text, want);
}

static void test_write(void **state)
{
	static const struct {
		const char *name;
		int want;
	} cases[] = { { "fresh", 0 }, { "hard", 0 }, { "link", 0 }, { "fifo", 0 }, { "directory", -EISDIR } };
	struct fixture *f = *state;
	struct stat st;

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		assert_int_equal(graft_file_write(f->journal, f->fd, cases[i].name, "new", 3, 0444), cases[i].want);
		if (cases[i].want == 0)
			check_file(f, cases[i].name, "new", 0444);
	}
	check_file(f, "host", "host", 0600);
	graft_journal_undo(f->journal, NULL);
	assert_int_equal(fstatat(f->fd, "fresh", &st, AT_SYMLINK_NOFOLLOW), -1);
	check_file(f, "hard", "host", 0600);
	assert_int_equal(fstatat(f->fd, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(fstatat(f->fd, "fifo", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

static void test_link(void **state)
{
	static const struct {
		const char *name;
		enum graft_conflict conflict;
		int want;
		const char *says; /* NULL = not a link */
	} cases[] = {
		{ "fresh", GRAFT_CONFLICT_KEEP, GRAFT_LINK_DONE, "new" },
		{ "other", GRAFT_CONFLICT_REPLACE, GRAFT_LINK_DONE, "new" },
		{ "link", GRAFT_CONFLICT_KEEP, GRAFT_LINK_KEPT, "host" },
		{ "link", GRAFT_CONFLICT_REPLACE, GRAFT_LINK_DONE, "new" },
		{ "link", GRAFT_CONFLICT_REPLACE, GRAFT_LINK_DONE, "new" },
		{ "hard", GRAFT_CONFLICT_KEEP, GRAFT_LINK_KEPT, NULL },
		{ "hard", GRAFT_CONFLICT_REPLACE, GRAFT_LINK_IS_FILE, NULL },
		{ "fifo", GRAFT_CONFLICT_REPLACE, GRAFT_LINK_KEPT, NULL },
		{ "directory", GRAFT_CONFLICT_REPLACE, GRAFT_LINK_KEPT, NULL },
		{ "newest", GRAFT_CONFLICT_OVERWRITE, GRAFT_LINK_DONE, "new" },
		{ "newest", GRAFT_CONFLICT_OVERWRITE, GRAFT_LINK_DONE, "new" },
		{ "dangling", GRAFT_CONFLICT_OVERWRITE, GRAFT_LINK_DONE, "new" },
		{ "hard", GRAFT_CONFLICT_OVERWRITE, GRAFT_LINK_DONE, "new" },
		{ "fifo", GRAFT_CONFLICT_OVERWRITE, GRAFT_LINK_DONE, "new" },
		{ "directory", GRAFT_CONFLICT_OVERWRITE, -EISDIR, NULL },
	};
	struct fixture *f = *state;
	struct stat st;

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		char text[64] = "";

		assert_int_equal(graft_file_link(f->journal, f->fd, cases[i].name, "new", cases[i].conflict),
				 cases[i].want);
		if (readlinkat(f->fd, cases[i].name, text, sizeof(text) - 1) < 0)
			assert_null(cases[i].says);
		else
			assert_string_equal(text, cases[i].says);
	}
	graft_journal_undo(f->journal, NULL);
	assert_int_equal(fstatat(f->fd, "fresh", &st, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(fstatat(f->fd, "other", &st, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(fstatat(f->fd, "newest", &st, AT_SYMLINK_NOFOLLOW), -1);
	check_link(f, "link", "host");
	check_link(f, "dangling", "nowhere");
	check_file(f, "hard", "host", 0600);
	assert_int_equal(fstatat(f->fd, "fifo", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_link, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
