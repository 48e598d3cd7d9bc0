/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctk_case: what tests of commands of nvidia-ctk share: a directory of their own, a `struct ctk` whose log is kept, a command's words, its standard
 * output. Include it behind cmocka.h, in exactly one source file of the program.
 */
#ifndef GRAFT_TEST_CTK_CASE_H
#define GRAFT_TEST_CTK_CASE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../folder.h"
#include "../../unit.h"
#include "base/cleanup.h"
#include "cli/ctk/ctk.h"

#define CASE_ARENA ((size_t)64 << 20)
#define CASE_WORDS 24

struct ctk_case {
	struct ctk ctk;
	char directory[32];
	char path[128];  /* what case_path() gave last */
	char said[8192]; /* the log: "warning: text" and a newline for each message */
	size_t n_said;
	char out[8192]; /* what the command wrote to standard output */
};

static void case_say(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	static const char *const levels[] = { "error", "warning", "info", "debug" };
	struct ctk_case *test = arg;
	int n = snprintf(test->said + test->n_said, sizeof(test->said) - test->n_said, "%s: %s\n", levels[level],
			 message);

	assert_true(n > 0 && test->n_said + (size_t)n < sizeof(test->said));
	test->n_said += (size_t)n;
}

/* A new run in the same directory, with an arena of so many bytes. */
static void case_renew(struct ctk_case *test, size_t arena_max)
{
	(void)graft_arena_free(test->ctk.arena);
	test->ctk = (struct ctk){ .words = CTK_PROGRAM " command" };
	test->ctk.log = test->ctk.steps = (struct graft_log){ .write = case_say, .arg = test };
	test->ctk.arena = graft_arena_new(arena_max);
	assert_non_null(test->ctk.arena);
	test->n_said = 0;
	test->said[0] = test->out[0] = '\0';
}

static int case_open(void **state)
{
	struct ctk_case *test = calloc(1, sizeof(*test));

	assert_non_null(test);
	(void)snprintf(test->directory, sizeof(test->directory), "/tmp/graft-test-XXXXXX");
	assert_non_null(mkdtemp(test->directory));
	case_renew(test, CASE_ARENA);
	*state = test;
	return 0;
}

/* Below the test's directory; good until the next call. */
static const char *case_path(struct ctk_case *test, const char *name)
{
	(void)snprintf(test->path, sizeof(test->path), "%s/%s", test->directory, name);
	return test->path;
}

static inline void case_write(struct ctk_case *test, const char *name, const char *text, mode_t mode)
{
	const char *path = case_path(test, name);

	test_put(AT_FDCWD, path, text);
	assert_int_equal(chmod(path, mode), 0);
}

/* The text of a file, in the arena; NULL: there is none. */
static inline const char *case_read(struct ctk_case *test, const char *name)
{
	auto_close int fd = open(case_path(test, name), O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return n < 0 ? NULL : graft_arena_strndup(test->ctk.arena, text, (size_t)n);
}

/*
 * A command's words, split at blanks; "@" is the test's directory. argv ends in NULL; the strings live as long as the caller's `text`.
 */
static int case_words(const struct ctk_case *test, const char *words, char *text, size_t size, char **argv)
{
	size_t used = 0;
	int argc = 0;

	for (; *words; words++) {
		int n = *words == '@' ? snprintf(text + used, size - used, "%s", test->directory)
				      : snprintf(text + used, size - used, "%c", *words);

		used += (size_t)n;
		assert_true(used < size);
	}
	text[used] = '\0';
	for (char *word = strtok_r(text, " ", &text); word; word = strtok_r(NULL, " ", &text)) {
		assert_true(argc < CASE_WORDS - 1);
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	return argc;
}

/* Runs it with standard output in test->out; its exit status. */
static inline int case_run(struct ctk_case *test, const struct graft_command *command, const char *words)
{
	auto_close int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	auto_close int to = memfd_create("stdout", MFD_CLOEXEC);
	char text[1024], *argv[CASE_WORDS];
	int argc = case_words(test, words, text, sizeof(text), argv), status;
	ssize_t n;

	assert_true(saved >= 0 && to >= 0);
	(void)fflush(stdout);
	assert_true(dup2(to, STDOUT_FILENO) >= 0);
	status = ctk_run_command(&test->ctk, command, argc, argv);
	assert_true(dup2(saved, STDOUT_FILENO) >= 0);
	n = pread(to, test->out, sizeof(test->out) - 1, 0);
	assert_true(n >= 0);
	test->out[n] = '\0';
	return status;
}

static int case_close(void **state)
{
	struct ctk_case *test = *state;

	(void)graft_arena_free(test->ctk.arena);
	assert_int_equal(test_remove_folder(test->directory), 0);
	free(test);
	return 0;
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, case_open, case_close)

#endif
