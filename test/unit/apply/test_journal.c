/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal, restore, temporary: after an undo, names, contents, owners, modes, times and mounts are
 * as before.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../folder.h"
#include "../image_root.h"
#include "../unit.h"
#include "apply/namespace/journal.h"
#include "apply/namespace/restore.h"
#include "apply/temporary.h"
#include "base/cleanup.h"

struct fixture {
	char top[64];
	int fd;
	struct graft_journal *journal;
	char log[4096];
};

static void note(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct fixture *f = arg;

	(void)snprintf(f->log + strlen(f->log), sizeof(f->log) - strlen(f->log), "%s\n", message);
}

static struct graft_log test_log = { .write = note, .max = GRAFT_LOG_DEBUG };

static int setup_at(void **state, const char *template)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	test_log.arg = f;
	(void)snprintf(f->top, sizeof(f->top), "%s", template);
	assert_non_null(mkdtemp(f->top));
	f->fd = open(f->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	f->journal = graft_journal_new(&test_log);
	assert_non_null(f->journal);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_at(state, "/tmp/graft-journal.XXXXXX");
}

/* Where thousands of links cost little. */
static int setup_in_memory(void **state)
{
	return setup_at(state, "/dev/shm/graft-journal.XXXXXX");
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

static const char *read_file(struct fixture *f, const char *name)
{
	static char text[256];
	auto_close int fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

static void test_created(void **state)
{
	struct fixture *f = *state;
	auto_test_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_root_watch watch = graft_journal_watch(f->journal);
	auto_close int fd = -1, other = -1;

	graft_image_root_take(&root, dup(f->fd), graft_budget_new(TEST_BUDGET_MS));
	assert_int_equal(graft_image_root_mountpoint(&root, "/a/b/c", false, 0644, &watch, &fd), 0);
	assert_int_equal(graft_image_root_mkdir(&root, "/a/d", 0755, GRAFT_IMAGE_CONTENT, &watch, &other), 0);
	assert_int_equal(test_count_names(f->top), 1);
	graft_journal_undo(f->journal, NULL);
	assert_int_equal(test_count_names(f->top), 0);
	assert_string_equal(f->log, "");
}

/* Failures are logged and do not stop the rest of the undo. */
static void test_undo_goes_on(void **state)
{
	struct fixture *f = *state;

	test_put(f->fd, "one", "1");
	assert_int_equal(graft_journal_created(f->journal, f->fd, "one", false), 0);
	assert_int_equal(graft_journal_created(f->journal, f->fd, "gone", false), 0);
	graft_journal_undo(f->journal, NULL);
	assert_int_equal(test_count_names(f->top), 0);
	assert_string_equal(f->log, "could not undo: remove file gone: No such file or directory\n");
	graft_journal_undo(f->journal, NULL);
}

static void test_forget(void **state)
{
	struct fixture *f = *state;

	test_put(f->fd, "kept", "1");
	assert_int_equal(graft_journal_created(f->journal, f->fd, "kept", false), 0);
	graft_journal_forget(f->journal);
	graft_journal_undo(f->journal, NULL);
	assert_int_equal(test_count_names(f->top), 1);
}

static void replace(struct fixture *f, const char *name, const char *content)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	auto_close int old_fd = openat(f->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	auto_close int fd = graft_temporary_file(f->fd, 0600, temporary);

	assert_true(fd >= 0);
	assert_int_equal(graft_write_all(fd, content, strlen(content)), 0);
	assert_int_equal(graft_journal_replaced(f->journal, f->fd, name, old_fd), 0);
	assert_int_equal(renameat(f->fd, temporary, f->fd, name), 0);
}

static void test_replaced_file(void **state)
{
	const struct timespec times[2] = { { .tv_sec = 1000, .tv_nsec = 5 }, { .tv_sec = 2000, .tv_nsec = 7 } };
	struct fixture *f = *state;
	struct stat before, after;

	test_put(f->fd, "cache", "old content");
	assert_int_equal(fchmodat(f->fd, "cache", 0640, 0), 0);
	if (geteuid() == 0)
		assert_int_equal(fchownat(f->fd, "cache", 12, 34, 0), 0);
	assert_int_equal(utimensat(f->fd, "cache", times, 0), 0);
	assert_int_equal(fstatat(f->fd, "cache", &before, AT_SYMLINK_NOFOLLOW), 0);
	replace(f, "cache", "new");
	replace(f, "cache", "newer");
	replace(f, "fresh", "was not there");
	graft_journal_undo(f->journal, NULL);
	assert_string_equal(f->log, "");
	assert_string_equal(read_file(f, "cache"), "old content");
	assert_int_equal(fstatat(f->fd, "cache", &after, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_uid, before.st_uid);
	assert_int_equal(after.st_gid, before.st_gid);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	assert_int_equal(test_count_names(f->top), 1);
}

/* If another name of it exists, the same inode is restored; nothing is written through it. */
static void test_replaced_hard_link(void **state)
{
	struct fixture *f = *state;
	struct stat before, after;

	test_put(f->fd, "host", "host's content");
	assert_int_equal(linkat(f->fd, "host", f->fd, "cache", 0), 0);
	assert_int_equal(fstatat(f->fd, "cache", &before, 0), 0);
	replace(f, "cache", "new");
	assert_string_equal(read_file(f, "host"), "host's content");
	assert_string_equal(read_file(f, "cache"), "new");
	graft_journal_undo(f->journal, NULL);
	assert_int_equal(fstatat(f->fd, "cache", &after, 0), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_nlink, 2);
	assert_int_equal(test_count_names(f->top), 2);
}

static void test_replaced_kinds(void **state)
{
	struct fixture *f = *state;
	char text[64];
	struct stat st;

	assert_int_equal(mkfifoat(f->fd, "fifo", 0600), 0);
	assert_int_equal(symlinkat("elsewhere", f->fd, "link"), 0);
	test_put(f->fd, "sparse", "");
	{
		auto_close int fd = openat(f->fd, "sparse", O_WRONLY | O_CLOEXEC);

		assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
		assert_int_equal(pwrite(fd, "x", 1, (off_t)1 << 39), 1);
	}
	replace(f, "fifo", "1");
	replace(f, "link", "2");
	replace(f, "sparse", "3");
	graft_journal_undo(f->journal, NULL);
	assert_string_equal(f->log, "");
	assert_int_equal(fstatat(f->fd, "fifo", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(readlinkat(f->fd, "link", text, sizeof(text)), 9);
	assert_int_equal(fstatat(f->fd, "sparse", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(st.st_size == (off_t)1 << 40);
	assert_true(st.st_blocks < 100);
	assert_int_equal(test_count_names(f->top), 3);
}

static void test_relinked(void **state)
{
	struct fixture *f = *state;
	char text[64] = "";

	assert_int_equal(symlinkat("old", f->fd, "link"), 0);
	assert_int_equal(graft_journal_relinked(f->journal, f->fd, "link", "old"), 0);
	assert_int_equal(unlinkat(f->fd, "link", 0), 0);
	assert_int_equal(symlinkat("new", f->fd, "link"), 0);
	graft_journal_settle(f->journal);
	assert_int_equal(graft_journal_relinked(f->journal, f->fd, "made", NULL), 0);
	assert_int_equal(symlinkat("fresh", f->fd, "made"), 0);
	graft_journal_undo(f->journal, NULL);
	assert_int_equal(readlinkat(f->fd, "link", text, sizeof(text)), 3);
	assert_memory_equal(text, "old", 3);
	assert_int_equal(test_count_names(f->top), 1);
}

/*
 * A link is ours as long as it has our text. It is also removed after something that replaced it
 * was undone.
 */
static void test_linked(void **state)
{
	struct fixture *f = *state;
	char text[64] = "";

	assert_int_equal(symlinkat("lib.so.1", f->fd, "lib.so"), 0);
	assert_int_equal(graft_journal_linked(f->journal, f->fd, "lib.so", "lib.so.1"), 0);
	assert_int_equal(symlinkat("target", f->fd, "replaced"), 0);
	assert_int_equal(graft_journal_linked(f->journal, f->fd, "replaced", "target"), 0);
	replace(f, "replaced", "a file");
	assert_int_equal(symlinkat("ours", f->fd, "taken"), 0);
	assert_int_equal(graft_journal_linked(f->journal, f->fd, "taken", "ours"), 0);
	assert_int_equal(unlinkat(f->fd, "taken", 0), 0);
	assert_int_equal(symlinkat("ours too", f->fd, "taken"), 0);
	assert_int_equal(symlinkat("x", f->fd, "file"), 0);
	assert_int_equal(graft_journal_linked(f->journal, f->fd, "file", "x"), 0);
	assert_int_equal(unlinkat(f->fd, "file", 0), 0);
	test_put(f->fd, "file", "somebody's");
	/* A link of others that we replaced later is restored and stays. */
	assert_int_equal(symlinkat("y", f->fd, "between"), 0);
	assert_int_equal(graft_journal_linked(f->journal, f->fd, "between", "y"), 0);
	assert_int_equal(unlinkat(f->fd, "between", 0), 0);
	test_put(f->fd, "between", "somebody's too");
	replace(f, "between", "ours");
	graft_journal_undo(f->journal, NULL);
	assert_string_equal(f->log, "could not undo: remove link between: another file now has that name\n"
				    "could not undo: remove link file: another file now has that name\n"
				    "could not undo: remove link taken: another file now has that name\n");
	assert_int_equal(readlinkat(f->fd, "taken", text, sizeof(text)), 8);
	assert_memory_equal(text, "ours too", 8);
	assert_string_equal(read_file(f, "file"), "somebody's");
	assert_string_equal(read_file(f, "between"), "somebody's too");
	assert_int_equal(test_count_names(f->top), 3);
}

static void test_held_directory(void **state)
{
	struct fixture *f = *state;
	int before = test_count_fds(), held = dup(f->fd);

	assert_int_equal(graft_journal_hold(f->journal, held), 0);
	for (int i = 0; i < 500; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%d", i);
		test_put(f->fd, name, "");
		assert_int_equal(graft_journal_created(f->journal, held, name, false), 0);
	}
	/* 500 entries hold one descriptor, and those of the first files that were made. */
	assert_int_equal(test_count_fds(), before + 1 + 256);
	graft_journal_undo(f->journal, NULL);
	assert_int_equal(test_count_names(f->top), 0);
	assert_int_equal(test_count_fds(), before);
}

/* The mount is removed although its mount point has been renamed; the working directory stays. */
static void test_mounted(void **state)
{
	struct fixture *f = *state;
	char point[128], moved[128], cwd[PATH_MAX], want[PATH_MAX];
	struct stat before, over, after;
	int fd;

	if (unshare(CLONE_NEWNS) < 0)
		skip();
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	(void)snprintf(point, sizeof(point), "%s/point", f->top);
	(void)snprintf(moved, sizeof(moved), "%s/dir", f->top);
	assert_int_equal(mkdir(moved, 0755), 0);
	(void)snprintf(point, sizeof(point), "%s/dir/point", f->top);
	assert_int_equal(mkdir(point, 0755), 0);
	assert_int_equal(stat(point, &before), 0);
	assert_int_equal(mount("none", point, "tmpfs", 0, NULL), 0);
	assert_int_equal(stat(point, &over), 0);
	assert_true(over.st_dev != before.st_dev);
	fd = open(point, O_PATH | O_CLOEXEC);
	assert_int_equal(graft_journal_reserve(f->journal), 0);
	graft_journal_mounted(f->journal, fd);
	(void)snprintf(point, sizeof(point), "%s/renamed", f->top);
	assert_int_equal(rename(moved, point), 0);
	assert_non_null(getcwd(want, sizeof(want)));
	graft_journal_undo(f->journal, NULL);
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_string_equal(cwd, want);
	assert_string_equal(f->log, "");
	(void)snprintf(point, sizeof(point), "%s/renamed/point", f->top);
	assert_int_equal(stat(point, &after), 0);
	assert_true(after.st_ino == before.st_ino && after.st_dev == before.st_dev);
}

/* Of several edits, the last one alone is undone; what it held is closed. */
static void test_undo_to(void **state)
{
	struct fixture *f = *state;
	int held = open(f->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t length;

	test_put(f->fd, "first", "1");
	assert_int_equal(graft_journal_created(f->journal, f->fd, "first", false), 0);
	length = graft_journal_length(f->journal);
	assert_int_equal(graft_journal_hold(f->journal, held), 0);
	test_put(f->fd, "second", "2");
	assert_int_equal(graft_journal_created(f->journal, held, "second", false), 0);
	assert_int_equal(mkdirat(f->fd, "third", 0755), 0);
	assert_int_equal(graft_journal_created(f->journal, held, "third", true), 0);
	assert_true(graft_journal_undo_to(f->journal, length, NULL));
	assert_int_equal(test_count_names(f->top), 1);
	assert_int_equal(graft_journal_length(f->journal), length);
	assert_int_equal(fcntl(held, F_GETFD), -1);
	assert_true(graft_journal_undo_to(f->journal, length, NULL));
	assert_int_equal(test_count_names(f->top), 1);
	graft_journal_undo(f->journal, NULL);
	assert_int_equal(test_count_names(f->top), 0);
	assert_string_equal(f->log, "");
}

#define DIRECTORIES 600
#define NAMES       13

/* Records the removal of links of the same few names in many directories, as an image can cause it. */
static void remove_many_links(struct fixture *f)
{
	char name[32];

	for (int i = 0; i < DIRECTORIES; i++) {
		int fd;

		(void)snprintf(name, sizeof(name), "d%d", i);
		assert_int_equal(mkdirat(f->fd, name, 0755), 0);
		fd = openat(f->fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_int_equal(graft_journal_hold(f->journal, fd), 0);
		for (int j = 0; j < NAMES; j++) {
			(void)snprintf(name, sizeof(name), "lib%d.so", j);
			assert_int_equal(graft_journal_relinked(f->journal, fd, name, "gone"), 0);
		}
	}
	graft_journal_settle(f->journal);
}

static int links_in(struct fixture *f)
{
	char name[32], text[8];
	int n = 0;

	for (int i = 0; i < DIRECTORIES * NAMES; i++) {
		(void)snprintf(name, sizeof(name), "d%d/lib%d.so", i / NAMES, i % NAMES);
		n += readlinkat(f->fd, name, text, sizeof(text)) == 4;
	}
	return n;
}

static double cpu_seconds(void)
{
	struct timespec time;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Entries of the same name in other directories are not compared one by one. */
static void test_undo_many(void **state)
{
	struct fixture *f = *state;
	double begin;

	remove_many_links(f);
	begin = cpu_seconds();
	graft_journal_undo(f->journal, NULL);
	assert_true(cpu_seconds() - begin < GRAFT_BUDGET_UNDO_MS * 2 / 1e3);
	assert_string_equal(f->log, "");
	assert_int_equal(links_in(f), DIRECTORIES * NAMES);
}

/* What an image can cause stays if it takes too long to undo. */
static void test_undo_late(void **state)
{
	struct fixture *f = *state;
	struct graft_budget *budget = graft_budget_new(0);

	remove_many_links(f);
	graft_journal_undo(f->journal, budget);
	assert_string_equal(f->log, "undoing takes too long: 7800 changes stay\n");
	assert_int_equal(links_in(f), 0);
	assert_int_equal(graft_journal_length(f->journal), 0);
	graft_budget_free(budget);
}

/* The same name through another descriptor of the directory, and far from its earlier change. */
static void test_undo_other_descriptor(void **state)
{
	struct fixture *f = *state;
	int whole_fd = f->fd;

	test_put(f->fd, "cache", "old");
	replace(f, "cache", "new");
	remove_many_links(f);
	f->fd = open(f->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	replace(f, "cache", "newer");
	(void)close(f->fd);
	f->fd = whole_fd;
	graft_journal_undo(f->journal, NULL);
	assert_string_equal(f->log, "");
	assert_string_equal(read_file(f, "cache"), "old");
}

static void test_temporary_names_differ(void **state)
{
	struct fixture *f = *state;
	char first[GRAFT_TEMPORARY_SIZE], second[GRAFT_TEMPORARY_SIZE];

	assert_int_equal(graft_temporary_link(f->fd, "x", first), 0);
	assert_int_equal(graft_temporary_link(f->fd, "x", second), 0);
	assert_string_not_equal(first, second);
	assert_int_equal(test_count_names(f->top), 2);
	assert_int_equal(graft_temporary_file(-1, 0600, first), -EBADF);
}

#define TEST(f)           cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST_IN_MEMORY(f) cmocka_unit_test_setup_teardown(f, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_created),
		TEST(test_undo_goes_on),
		TEST(test_forget),
		TEST(test_replaced_file),
		TEST(test_replaced_hard_link),
		TEST(test_replaced_kinds),
		TEST(test_relinked),
		TEST(test_held_directory),
		TEST(test_undo_to),
		TEST_IN_MEMORY(test_undo_many),
		TEST_IN_MEMORY(test_undo_late),
		TEST_IN_MEMORY(test_undo_other_descriptor),
		TEST(test_temporary_names_differ),
		TEST(test_mounted),
		TEST(test_linked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
