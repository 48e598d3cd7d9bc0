/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calling another program and ending as it did, tested with the shell; and that it never outlives
 * us.
 */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "../unit.h"
#include "start/low_level.h"
#include "world.h"

#define SHELL   "/bin/sh"
#define LIMIT_S 30u /* for anything that must not block */

/* Calls `path` with up to four arguments, NULL-terminated. */
static int call(const struct world *world, const char *path, const char *const *words, int *ret_status,
		struct graft_error *err)
{
	char *argv[5] = { NULL };

	for (size_t i = 0; i < 4 && words[i]; i++)
		argv[i] = graft_arena_strdup(world->arena, words[i]);
	return graft_low_level_call(path, argv, world->arena, ret_status, err);
}

static int call_shell(const struct world *world, const char *script, int *ret_status, struct graft_error *err)
{
	const char *const words[] = { "runc", "-c", script, NULL };

	return call(world, SHELL, words, ret_status, err);
}

/* The waitpid(2) status of a child that makes the call. Its output is discarded. */
static int status_of_child(const struct world *world, void (*make)(const struct world *world))
{
	pid_t pid;
	int status = 0;

	(void)fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(LIMIT_S);
		make(world);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* ---- how it ended ---- */

static void test_status(void **state)
{
	static const struct {
		const char *script;
		int status;
	} rows[] = {
		{ "exit 0", 0 },
		{ "exit 1", 1 },
		{ "exit 42", 42 },
		{ "exit 255", 255 },
		/*
		 * the statuses that shells use for programs that could not be started or were ended
		 * by a signal are like any other
		 */
		{ "exit 126", 126 },
		{ "exit 127", 127 },
		{ "exit 137", 137 },
		{ "kill -TERM $$", -SIGTERM },
		{ "kill -KILL $$", -SIGKILL },
		{ "kill -HUP $$", -SIGHUP },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		int status = -1000;

		print_message("# %s\n", rows[i].script);
		assert_int_equal(call_shell(*state, rows[i].script, &status, &err), 0);
		assert_int_equal(status, rows[i].status);
		assert_int_equal(err.status, GRAFT_OK);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child remains */
}

static void test_not_started(void **state)
{
	struct world *world = *state;
	const struct {
		const char *path;
		enum graft_status status;
	} rows[] = {
		{ "/nowhere/runc", GRAFT_NOT_FOUND },
		{ "", GRAFT_NOT_FOUND },
		{ world_put(world, "mode", "#!/bin/sh\n", 0644), GRAFT_PERMISSION },
		{ world->directory, GRAFT_PERMISSION },
		{ world_put(world, "garbage",
			    "\x7f"
			    "ELF",
			    0755),
		  GRAFT_IO },
		{ world_put(world, "interpreter", "#!/nowhere/sh\n", 0755), GRAFT_NOT_FOUND },
	};
	const char *const words[] = { "runc", "create", NULL };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		int status = 0;

		print_message("# %s\n", rows[i].path);
		assert_int_equal(call(world, rows[i].path, words, &status, &err), -1);
		assert_int_equal(err.status, rows[i].status);
		assert_string_equal(err.msg, graft_arena_printf(world->arena, "could not exec '%s'", rows[i].path));
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_memory(void **state)
{
	struct world *world = *state;
	struct graft_arena *none = graft_arena_new(1);
	struct graft_error err = { .status = GRAFT_OK };
	char name[] = "runc", option[] = "-c";
	char *argv[] = { name, option, graft_arena_printf(world->arena, "echo >%s/called", world->directory), NULL };
	int status;

	assert_int_equal(graft_low_level_call(SHELL, argv, none, &status, &err), -1);
	assert_int_equal(err.status, GRAFT_NO_MEMORY);
	assert_string_equal(world_get(world, "called"), "");
	assert_ptr_equal(argv[0], name);
	err.status = GRAFT_OK;
	assert_int_equal(graft_low_level_become(SHELL, argv, none, &err), -1);
	assert_int_equal(err.status, GRAFT_NO_MEMORY);
	graft_arena_free(none);
}

/* ---- what it gets ---- */

#define SHOW_WORDS "tr '\\0' '\\n' </proc/$$/cmdline >%s/words"

static void test_words(void **state)
{
	struct world *world = *state;
	const char *script = graft_arena_printf(world->arena, SHOW_WORDS, world->directory);
	int status = -1;

	assert_int_equal(call_shell(world, script, &status, NULL), 0);
	assert_int_equal(status, 0);
	assert_string_equal(world_get(world, "words"), graft_arena_printf(world->arena, SHELL "\n-c\n%s\n", script));
}

/* Without arguments the shell reads the script from standard input. */
static void call_without_words(const struct world *world)
{
	int fd = open(world_path(world, "script"), O_RDONLY | O_CLOEXEC), status = -1;
	const char *const none[] = { NULL };

	if (fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO && call(world, SHELL, none, &status, NULL) == 0)
		_exit(status);
}

/* Since Linux 5.18 no program can be started without argv[0]. */
static void test_no_words(void **state)
{
	struct world *world = *state;

	world_put(world, "script", graft_arena_printf(world->arena, SHOW_WORDS, world->directory), 0644);
	assert_int_equal(status_of_child(world, call_without_words), 0);
	assert_string_equal(world_get(world, "words"), "\n");
}

/* Whether a line of the program's own /proc/self/status matches the pattern. */
static bool finds(const struct world *world, const char *pattern)
{
	const char *const words[] = { "grep", "-q", pattern, "/proc/self/status" };
	int status = -1;

	if (call(world, "/bin/grep", words, &status, NULL) < 0)
		_exit(1);
	return status == 0;
}

/* Bit 16 is SIGCHLD, bit 11 SIGUSR2, bit 9 SIGUSR1. */
#define IGNORES_CHILDREN "^SigIgn:.*[13579bdf]....$"
#define BLOCKS_USR2      "^SigBlk:[^0-9a-f]*0*800$"
#define BLOCKS_NOTHING   "^SigBlk:[^0-9a-f]*0*$"

static void call_ignoring(const struct world *world)
{
	int status = -1;

	(void)signal(SIGCHLD, SIG_IGN);
	if (call_shell(world, "exit 7", &status, NULL) < 0 || status != 7)
		_exit(2);
	_exit(finds(world, IGNORES_CHILDREN) && finds(world, BLOCKS_NOTHING) ? 0 : 3);
}

static void call_blocking(const struct world *world)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR2);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	/* The second call behaves like the first. */
	for (int i = 0; i < 2; i++)
		if (finds(world, IGNORES_CHILDREN) || !finds(world, BLOCKS_USR2))
			_exit(2);
	_exit(0);
}

/*
 * An engine may ignore SIGCHLD. We still notice that the program ended, and its signals are as they
 * would be without us.
 */
static void test_callers_signals(void **state)
{
	assert_int_equal(status_of_child(*state, call_ignoring), 0);
	assert_int_equal(status_of_child(*state, call_blocking), 0);
}

/*
 * Calls a program that records signals; its status becomes ours. Its first line means that it is
 * ready.
 */
static void call_noting(const struct world *world)
{
	int status = -1;

	if (call_shell(
		world,
		"trap 'exit 21' TERM; trap 'exit 22' INT; trap 'exit 23' USR1; trap 'exit 24' HUP; trap '' QUIT; echo; "
		"while :; do sleep 0.01; done",
		&status, NULL) < 0)
		_exit(1);
	_exit(status < 0 ? 100 - status : status);
}

static void test_handed_on(void **state)
{
	static const struct {
		int signals[2]; /* 0 = none */
		int exit_status;
	} rows[] = {
		{ { SIGTERM }, 21 }, { { SIGINT }, 22 },           { { SIGUSR1 }, 23 },
		{ { SIGHUP }, 24 },  { { SIGQUIT, SIGTERM }, 21 }, { { SIGUSR2 }, 100 + SIGUSR2 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		int ends[2], status = 0;
		char c = 0;
		pid_t pid;

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		(void)fflush(stdout);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			if (dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO)
				call_noting(*state);
			_exit(1);
		}
		(void)close(ends[1]);
		assert_int_equal(read(ends[0], &c, 1), 1);
		for (size_t j = 0; j < GRAFT_COUNT(rows[i].signals) && rows[i].signals[j] != 0; j++)
			assert_int_equal(kill(pid, rows[i].signals[j]), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), rows[i].exit_status);
		(void)close(ends[0]);
	}
}

/* ---- ends ---- */

/* A SIGKILL for us also ends the program: the other end of its output is closed. */
static void test_death(void **state)
{
	struct world *world = *state;
	struct pollfd end;
	int ends[2];
	pid_t pid;
	char c = 0;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int status = 0;

		if (dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO)
			(void)call_shell(world, "echo; exec sleep 60", &status, NULL);
		_exit(1);
	}
	(void)close(ends[1]);
	end = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	assert_int_equal(poll(&end, 1, (int)LIMIT_S * 1000), 1);
	assert_int_equal(read(ends[0], &c, 1), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(poll(&end, 1, (int)LIMIT_S * 1000), 1);
	assert_int_equal(read(ends[0], &c, 1), 0);
	(void)close(ends[0]);
}

static void become_it(const struct world *world)
{
	char name[] = "runc", option[] = "-c", script[] = "exit 9";
	char *argv[] = { name, option, script, NULL };

	(void)graft_low_level_become(SHELL, argv, world->arena, NULL);
}

static void test_become(void **state)
{
	struct world *world = *state;
	struct graft_error err = { .status = GRAFT_OK };
	char name[] = "runc";
	char *argv[] = { name, NULL };
	int status = status_of_child(world, become_it);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 9);
	assert_int_equal(graft_low_level_become("/nowhere/runc", argv, world->arena, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_string_equal(err.msg, "could not exec '/nowhere/runc'");
}

static int end_status;
static bool end_blocked;

static void end_alike(const struct world *world)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)signal(SIGTERM, SIG_IGN);
	(void)sigprocmask(end_blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
	graft_low_level_end_alike(end_status);
}

/* Independent of what the signal does in this program. */
static void test_end_alike(void **state)
{
	static const struct {
		int status;
		bool blocked; /* SIGTERM, which is ignored in both cases */
		int exit_status, signal_number;
	} rows[] = {
		{ 0, false, 0, 0 },
		{ 1, false, 1, 0 },
		{ 127, false, 127, 0 },
		{ 255, false, 255, 0 },
		{ -SIGTERM, false, 0, SIGTERM },
		{ -SIGKILL, false, 0, SIGKILL },
		{ -SIGKILL, true, 0, SIGKILL },
		{ -SIGTERM, true, 0, SIGTERM },
		/* as shells report it */
		{ -SIGCHLD, false, 128 + SIGCHLD, 0 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		int status;

		end_status = rows[i].status;
		end_blocked = rows[i].blocked;
		status = status_of_child(*state, end_alike);
		print_message("# %d: %d\n", end_status, status);
		assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, rows[i].signal_number);
		assert_int_equal(WIFSIGNALED(status) ? 0 : WEXITSTATUS(status), rows[i].exit_status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* Has to be first: the first call in a process saves the caller's signals. */
		cmocka_unit_test_setup_teardown(test_callers_signals, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_handed_on, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_status, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_not_started, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_memory, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_words, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_no_words, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_death, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_become, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_end_alike, world_begin, world_end),
	};

	/*
	 * nohup(1), for example, leaves it ignored, and a shell cannot trap a signal that was
	 * ignored at its start.
	 */
	(void)signal(SIGHUP, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGQUIT, SIG_DFL);
	return cmocka_run_group_tests_name("runtime_low_level", tests, NULL, NULL);
}
