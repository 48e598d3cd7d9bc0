/* SPDX-License-Identifier: Apache-2.0 */
/* Programs run as children: their input, their output, how they end, and programs that never end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../allocation.h"
#include "../../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/ctk/child.h"

static struct graft_arena *arena;

static int open_arena(void **state)
{
	arena = graft_arena_new((size_t)64 << 20);
	return arena ? 0 : -1;
}

static int close_arena(void **state)
{
	arena = graft_arena_free(arena);
	return 0;
}

static int run_shell(const char *script, const char *const *variables, int timeout_ms, struct ctk_child_result *result,
		     struct graft_error *err)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	const struct ctk_child child = { .argv = argv, .variables = variables, .timeout_ms = timeout_ms };

	return ctk_child_run(&child, arena, result, err);
}

static void test_answers(void **state)
{
	static const struct {
		const char *script, *out, *err;
		int status;
	} rows[] = {
		{ "echo out; echo err >&2", "out\n", "err", 0 },
		{ "exit 3", "", "", 3 },
		{ "printf ' \\n two\\nlines \\n\\n' >&2; exit 1", "", "two\nlines", 1 },
		{ "kill -TERM $$", "", "", 128 + SIGTERM },
		{ "cat", "", "", 0 }, /* no input */
		{ "exec >&- 2>&-; sleep 0.1; exit 7", "", "", 7 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk_child_result result;

		assert_int_equal(run_shell(rows[i].script, NULL, 20000, &result, NULL), 0);
		assert_string_equal(result.out, rows[i].out);
		assert_int_equal(result.out_length, strlen(rows[i].out));
		assert_string_equal(result.err, rows[i].err);
		assert_int_equal(result.status, rows[i].status);
	}
}

static void test_environment(void **state)
{
	static const char *const variables[] = { "MORE=x y", NULL };
	struct ctk_child_result result;

	assert_int_equal(setenv("GRAFT_TEST_SECRET", "1", 1), 0);
	assert_int_equal(run_shell("env", variables, 20000, &result, NULL), 0);
	assert_null(strstr(result.out, "GRAFT_TEST_SECRET"));
	assert_non_null(strstr(result.out, "MORE=x y\n"));
	assert_non_null(strstr(result.out, "LC_ALL=C\n"));
	assert_non_null(strstr(result.out, "HOME="));
	assert_int_equal(unsetenv("GRAFT_TEST_SECRET"), 0);
}

static void test_large_output(void **state)
{
	struct ctk_child_result result;
	struct graft_error err = { 0 };

	assert_int_equal(run_shell("head -c 1000000 /dev/zero | tr '\\0' x; head -c 1000000 /dev/zero | tr '\\0' y >&2",
				   NULL, 20000, &result, NULL),
			 0);
	assert_int_equal(result.out_length, 1000000);
	assert_int_equal(strlen(result.err), 1000000);
	assert_int_equal(run_shell("exec cat /dev/zero", NULL, 20000, &result, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
}

static void test_programs_that_cannot_be_run(void **state)
{
	static const struct {
		const char *name;
		enum graft_status status;
		const char *why;
	} rows[] = {
		{ "/nowhere/program", GRAFT_NOT_FOUND, "no such file or directory" },
		{ "graft-no-such-program", GRAFT_NOT_FOUND, "no such file or directory" },
		{ "/etc/passwd", GRAFT_PERMISSION, "permission denied" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *const argv[] = { rows[i].name, NULL };
		const struct ctk_child child = { .argv = argv, .timeout_ms = 20000 };
		struct ctk_child_result result;
		struct graft_error err = { 0 };
		char text[800];

		assert_int_equal(ctk_child_run(&child, arena, &result, &err), -1);
		assert_int_equal(err.status, rows[i].status);
		assert_string_printed(graft_error_text(&err, text, sizeof(text)), "%s cannot be run: %s", rows[i].name,
				      rows[i].why);
	}
}

/* Too slow: it and its children are killed, whether or not they still hold the pipes. */
static void test_time_limit(void **state)
{
	static const char *const scripts[] = { "echo $$; sleep 100 & wait", "exec >&- 2>&-; sleep 100; exit 0" };

	for (size_t i = 0; i < GRAFT_COUNT(scripts); i++) {
		int64_t start_ms = graft_clock_ms();
		struct ctk_child_result result;
		struct graft_error err = { 0 };

		assert_int_equal(run_shell(scripts[i], NULL, 300, &result, &err), -1);
		assert_int_equal(err.status, GRAFT_PROGRAM);
		assert_string_equal(err.msg, "sh gave no answer within 0 seconds");
		assert_true(graft_clock_ms() - start_ms < 20000);
	}
}

static void test_memory(void **state)
{
	for (int n = 1;; n++) {
		struct graft_arena *own = NULL;
		struct ctk_child_result result;
		const struct ctk_child child = {
			.argv = (const char *const[]){ "sh", "-c", "echo a; echo b >&2", NULL }, .timeout_ms = 20000
		};
		struct graft_error err = { 0 };
		int rc = -1;

		allocation_fail(n);
		own = graft_arena_new(1 << 20);
		if (own)
			rc = ctk_child_run(&child, own, &result, &err);
		(void)graft_arena_free(own);
		if (!allocation_failed()) {
			assert_int_equal(rc, 0);
			assert_true(n > 3);
			return;
		}
		assert_int_equal(rc, -1);
		assert_true(!own || err.status == GRAFT_NO_MEMORY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),      cmocka_unit_test(test_environment),
		cmocka_unit_test(test_large_output), cmocka_unit_test(test_programs_that_cannot_be_run),
		cmocka_unit_test(test_time_limit),   cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, open_arena, close_arena);
}
