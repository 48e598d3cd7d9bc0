/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore, by means of the journal: another process changes the same names at every moment of an
 * undo. Its files are there afterwards, and none of ours are. The moments are the calls of
 * renameat2(2), before each of which a function of the test is called (ld --wrap).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../folder.h"
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

/* What to do at a call of renameat2(2). */
static struct {
	int fd, n_calls;
	int at, again; /* numbers of the calls before which "name" is taken, from 1; 0 = none */
	bool refused;  /* fail as a file system without support for flags */
} race;

/* By another file, that is born two ticks of the kernel's clock after the one that had the name: before Linux 6.13 birth times are no finer. */
static void take(const char *content)
{
	const struct timespec two_ticks = { .tv_nsec = 20 * 1000 * 1000 };
	auto_close int fd = -1;

	(void)nanosleep(&two_ticks, NULL);
	if (unlinkat(race.fd, "name", 0) < 0)
		(void)unlinkat(race.fd, "name", AT_REMOVEDIR);
	fd = openat(race.fd, "name", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(graft_write_all(fd, content, strlen(content)), 0);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number != SYS_renameat2)
		return __real_syscall(number, a, b, c, d, e, f);
	race.n_calls++;
	if (race.n_calls == race.at)
		take("theirs");
	if (race.n_calls == race.again)
		take("a third one's");
	if (race.refused) {
		errno = EINVAL;
		return -1;
	}
	return __real_syscall(number, a, b, c, d, e, f);
}

static void note(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct fixture *f = arg;

	(void)snprintf(f->log + strlen(f->log), sizeof(f->log) - strlen(f->log), "%s\n", message);
}

static struct graft_log test_log = { .write = note, .max = GRAFT_LOG_DEBUG };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	test_log.arg = f;
	(void)snprintf(f->top, sizeof(f->top), "/tmp/graft-restore.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	f->fd = open(f->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	(void)close(f->fd);
	assert_int_equal(test_remove_folder(f->top), 0);
	free(f);
	return 0;
}

/* The content of a file or the text of a link; "" = does not exist, "/" = a directory. */
static const char *look(struct fixture *f, const char *name)
{
	static char text[256];
	auto_close int fd = -1;
	struct stat st;
	ssize_t n;

	if (fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return "";
	if (S_ISDIR(st.st_mode))
		return "/";
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(f->fd, name, text, sizeof(text) - 1);
	} else {
		fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		n = read(fd, text, sizeof(text) - 1);
	}
	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

/* Counts the names other than "name", and stores one of them. */
static int others(struct fixture *f, char *other, size_t size)
{
	auto_dir DIR *directory = opendir(f->top);
	const struct dirent *entry;
	int n = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strcmp(entry->d_name, "name") == 0)
			continue;
		(void)snprintf(other, size, "%s", entry->d_name);
		n++;
	}
	return n;
}

/* ---- the changes to undo ---- */

static void create_file(struct fixture *f)
{
	test_put(f->fd, "name", "");
	assert_int_equal(graft_journal_created(f->journal, f->fd, "name", false), 0);
	graft_journal_settle(f->journal);
}

/* Like a mount point: its descriptor exists already, and belongs to the journal from then on. */
static void create_and_keep(struct fixture *f)
{
	size_t length = graft_journal_length(f->journal);
	auto_close int fd = openat(f->fd, "name", O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_false(graft_journal_keep(f->journal, length, fd));
	assert_int_equal(graft_journal_created(f->journal, f->fd, "name", false), 0);
	assert_false(graft_journal_keep(f->journal, length + 1, fd));
	assert_true(graft_journal_keep(f->journal, length, fd));
	assert_false(graft_journal_keep(f->journal, length, fd));
	fd = -1;
}

static void create_link(struct fixture *f)
{
	assert_int_equal(symlinkat("new", f->fd, "name"), 0);
	assert_int_equal(graft_journal_linked(f->journal, f->fd, "name", "new"), 0);
}

static void create_directory(struct fixture *f)
{
	assert_int_equal(mkdirat(f->fd, "name", 0755), 0);
	assert_int_equal(graft_journal_created(f->journal, f->fd, "name", true), 0);
	graft_journal_settle(f->journal);
}

static void put_new(struct fixture *f)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	auto_close int fd = graft_temporary_file(f->fd, 0600, temporary);

	assert_true(fd >= 0);
	assert_int_equal(graft_write_all(fd, "new", 3), 0);
	assert_int_equal(renameat(f->fd, temporary, f->fd, "name"), 0);
	graft_journal_settle(f->journal);
}

static void replace_file(struct fixture *f)
{
	auto_close int old_fd = -1;

	test_put(f->fd, "name", "old");
	old_fd = openat(f->fd, "name", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	assert_int_equal(graft_journal_replaced(f->journal, f->fd, "name", old_fd), 0);
	put_new(f);
}

static void replace_nothing(struct fixture *f)
{
	assert_int_equal(graft_journal_replaced(f->journal, f->fd, "name", -1), 0);
	put_new(f);
}

static void relink(struct fixture *f)
{
	assert_int_equal(symlinkat("old", f->fd, "name"), 0);
	assert_int_equal(graft_journal_relinked(f->journal, f->fd, "name", "old"), 0);
	put_new(f);
}

static void remove_link(struct fixture *f)
{
	assert_int_equal(symlinkat("old", f->fd, "name"), 0);
	assert_int_equal(graft_journal_relinked(f->journal, f->fd, "name", "old"), 0);
	assert_int_equal(unlinkat(f->fd, "name", 0), 0);
	graft_journal_settle(f->journal);
}

/* The same name twice: the first one restored is a copy, and ours. */
static void create_and_replace(struct fixture *f)
{
	auto_close int old_fd = -1;

	create_file(f);
	old_fd = openat(f->fd, "name", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	assert_int_equal(graft_journal_replaced(f->journal, f->fd, "name", old_fd), 0);
	put_new(f);
}

static const struct change {
	const char *what;
	void (*make)(struct fixture *f);
	const char *undone; /* the result of look() afterwards */
	int n_renames;      /* calls of renameat2(2) during the undo */
} changes[] = {
	{ "file made", create_file, "", 1 },
	{ "mount point made", create_and_keep, "", 1 },
	{ "link made", create_link, "", 1 },
	{ "directory made", create_directory, "", 0 },
	{ "file replaced", replace_file, "old", 1 },
	{ "file made by rename", replace_nothing, "", 1 },
	{ "link replaced", relink, "old", 1 },
	{ "link removed", remove_link, "old", 1 },
	{ "file made and replaced", create_and_replace, "", 2 },
};

/*
 * Makes a change, takes "name" before the undo (`at` 0) or at one of its calls, and undoes the
 * change.
 */
static void undo(struct fixture *f, const struct change *change, bool before, int at, bool refused)
{
	f->journal = graft_journal_new(&test_log);
	assert_non_null(f->journal);
	f->log[0] = '\0';
	memset(&race, 0, sizeof(race));
	race.fd = f->fd;
	change->make(f);
	if (before)
		take("theirs");
	race.n_calls = 0;
	race.at = at;
	race.refused = refused;
	graft_journal_undo(f->journal, NULL);
	f->journal = graft_journal_free(f->journal);
}

static void clean(struct fixture *f)
{
	if (unlinkat(f->fd, "name", 0) < 0)
		(void)unlinkat(f->fd, "name", AT_REMOVEDIR);
}

static void assert_is(struct fixture *f, const struct change *change, const char *want)
{
	char other[256];

	if (strcmp(look(f, "name"), want) != 0)
		fail_msg("%s: '%s' instead of '%s'", change->what, look(f, "name"), want);
	if (others(f, other, sizeof(other)) != 0)
		fail_msg("%s: %s is left", change->what, other);
}

static void test_undone(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < GRAFT_COUNT(changes); i++) {
		for (int refused = 0; refused < 2; refused++) {
			undo(f, &changes[i], false, 0, refused != 0);
			assert_string_equal(f->log, "");
			assert_is(f, &changes[i], changes[i].undone);
			if (race.n_calls != changes[i].n_renames)
				fail_msg("%s: %d calls", changes[i].what, race.n_calls);
			clean(f);
		}
	}
}

/*
 * A file that took the name before the undo keeps it; the file system need not support flags for
 * that.
 */
static void test_taken_before(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < GRAFT_COUNT(changes); i++) {
		for (int refused = 0; refused < 2; refused++) {
			undo(f, &changes[i], true, 0, refused != 0);
			assert_non_null(strstr(f->log, " name: another file now has that name\n"));
			assert_is(f, &changes[i], "theirs");
			assert_int_equal(race.n_calls, 0);
			clean(f);
		}
	}
}

/* The name is taken between our look at it and the rename. */
static void test_taken_meanwhile(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < GRAFT_COUNT(changes); i++) {
		for (int at = 1; at <= changes[i].n_renames; at++) {
			undo(f, &changes[i], false, at, false);
			assert_non_null(strstr(f->log, " name: another file now has that name\n"));
			assert_is(f, &changes[i], "theirs");
			clean(f);
		}
	}
}

/* The name is taken twice in succession: the last file has it, and no content of others is lost. */
static void test_taken_twice(void **state)
{
	struct fixture *f = *state;
	char other[256] = "";

	f->journal = graft_journal_new(&test_log);
	memset(&race, 0, sizeof(race));
	race.fd = f->fd;
	create_file(f);
	race.at = 1;
	race.again = 2;
	graft_journal_undo(f->journal, NULL);
	f->journal = graft_journal_free(f->journal);
	assert_string_equal(look(f, "name"), "a third one's");
	assert_int_equal(others(f, other, sizeof(other)), 1);
	assert_string_equal(look(f, other), "theirs");
}

/* A directory to which others have added files stays, with these files. */
static void test_filled_directory(void **state)
{
	struct fixture *f = *state;

	f->journal = graft_journal_new(&test_log);
	create_directory(f);
	test_put(f->fd, "name/inside", "theirs");
	graft_journal_undo(f->journal, NULL);
	f->journal = graft_journal_free(f->journal);
	assert_string_equal(f->log, "could not undo: remove directory name: Directory not empty\n");
	assert_string_equal(look(f, "name/inside"), "theirs");
}

/* Many file systems reuse an inode number at once, but not with the same birth time. */
static void test_same_number(void **state)
{
	struct fixture *f = *state;
	struct graft_mark ours, theirs;

	test_put(f->fd, "name", "");
	assert_int_equal(graft_mark(f->fd, "name", &ours), 0);
	assert_true(ours.there);
	race.fd = f->fd;
	take("theirs");
	assert_int_equal(graft_mark(f->fd, "name", &theirs), 0);
	if (ours.born_s == 0)
		skip();
	theirs.ino = ours.ino;
	assert_memory_not_equal(&ours, &theirs, sizeof(ours));
	assert_int_equal(unlinkat(f->fd, "name", 0), 0);
	assert_int_equal(graft_mark(f->fd, "name", &theirs), 0);
	assert_false(theirs.there);
	assert_int_equal(graft_mark(-1, "name", &theirs), -EBADF);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_undone),      TEST(test_taken_before),     TEST(test_taken_meanwhile),
		TEST(test_taken_twice), TEST(test_filled_directory), TEST(test_same_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
