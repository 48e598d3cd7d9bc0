/* SPDX-License-Identifier: Apache-2.0 */
/* budget: processor time is counted, of this process and of its children; waiting is not. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "base/budget.h"

/* Until this process has used that much of the processor. */
static void work(int ms)
{
	struct timespec now;
	int64_t end_us;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	end_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + (int64_t)ms * 1000;
	do
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while ((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 < end_us);
}

/* Asked often enough to have looked at the clock. */
static bool is_spent(struct graft_budget *budget)
{
	bool spent = false;

	for (int i = 0; i < 16; i++)
		spent = graft_budget_is_spent(budget);
	return spent;
}

static void test_own_time(void **state)
{
	const struct timespec pause = { .tv_nsec = 60000000 };
	struct graft_budget *budget = graft_budget_new(40);

	assert_non_null(budget);
	(void)nanosleep(&pause, NULL);
	assert_false(is_spent(budget));
	assert_true(graft_budget_left_ms(budget) > 0);
	work(50);
	assert_true(is_spent(budget));
	assert_int_equal(graft_budget_left_ms(budget), 0);
	assert_null(graft_budget_free(budget));
	assert_null(graft_budget_free(NULL));
}

/* However often it is extended. */
static void test_extended(void **state)
{
	struct graft_budget *budget = graft_budget_new(1000);
	int64_t left;

	graft_budget_extend(budget, 150, 200);
	left = graft_budget_left_ms(budget);
	assert_true(left > 1050 && left <= 1150);
	graft_budget_extend(budget, 150, 200);
	graft_budget_extend(budget, 100000, 200);
	graft_budget_extend(budget, 1, 0);
	left = graft_budget_left_ms(budget);
	assert_true(left > 1100 && left <= 1200);
	assert_null(graft_budget_free(budget));
#if !defined(__SANITIZE_ADDRESS__)
	/* A start of the runtime and five hooks, with as many edits as there may be, and the undo. */
	assert_true(
	    2 * GRAFT_BUDGET_CPU_MS + 4 * GRAFT_BUDGET_LEAST_MS + GRAFT_BUDGET_EDITS_MS + GRAFT_BUDGET_UNDO_MS <= 2000);
#endif
}

static void test_shared(void **state)
{
	static const struct {
		int64_t used_ms, most_ms;
	} rows[] = { { 0, 1000 }, { 300, 700 }, { 899, 101 }, { 900, 100 }, { 100000, 100 }, { INT64_MAX, 100 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct graft_budget *budget = graft_budget_new(1000);
		int64_t left;

		graft_budget_share(budget, rows[i].used_ms, 100);
		graft_budget_share(budget, 500, 100);
		left = graft_budget_left_ms(budget);
		if (left > rows[i].most_ms || left < rows[i].most_ms - 50)
			fail_msg("%lld", (long long)left);
		graft_budget_free(budget);
	}
}

static pid_t start(int ms)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		work(ms);
		_exit(0);
	}
	return pid;
}

static void add_child(struct graft_budget *budget, pid_t pid)
{
	graft_budget_add_child(budget, &(struct graft_budget_child){ .pid = pid, .fd = -1, .allowed_ms = 400 });
}

static void test_time_of_children(void **state)
{
	struct graft_budget *budget = graft_budget_new(1000);
	int64_t left;
	pid_t pid;

	pid = start(100);
	add_child(budget, pid);
	/* Until it has ended it may take all that it is allowed. */
	assert_true(graft_budget_left_ms(budget) <= 600);
	assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	assert_false(graft_budget_end_child(budget));
	left = graft_budget_left_ms(budget);
	assert_true(left <= 900 && left > 600);
	/* Reaped, and forgotten. */
	assert_int_equal(kill(pid, 0), -1);
	assert_false(graft_budget_end_child(budget));
	graft_budget_free(budget);
}

/* One that goes on is ended: by the next one, and at the end. */
static void test_child_is_ended(void **state)
{
	struct graft_budget *budget = graft_budget_new(1000);
	pid_t first = start(60000), second;

	add_child(budget, first);
	second = start(60000);
	add_child(budget, second);
	assert_int_equal(kill(first, 0), -1);
	assert_int_equal(errno, ESRCH);
	graft_budget_free(budget);
	assert_int_equal(kill(second, 0), -1);
	assert_int_equal(errno, ESRCH);
}

/* Another process may have its number, and what it used is unknown. */
static void test_reaped_by_another(void **state)
{
	struct graft_budget *budget = graft_budget_new(1000);
	pid_t pid = start(0);

	assert_int_equal(waitpid(pid, NULL, 0), pid);
	add_child(budget, pid);
	assert_true(graft_budget_end_child(budget));
	assert_true(graft_budget_left_ms(budget) <= 600);
	graft_budget_free(budget);
}

/*
 * Where SIGCHLD is ignored, nothing is left of a child that has ended. Also one that goes on after
 * it was dismissed is counted.
 */
static void test_sigchld_is_ignored(void **state)
{
	static const struct {
		int further_ms, least_ms, most_ms;
		bool dismissed;
	} rows[] = {
		{ 0, 800, 905, true },
		{ 0, 800, 905, false },
		{ 60000, 600, 905, false },
	};
	struct sigaction old;

	assert_int_equal(sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_IGN }, &old), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct graft_budget *budget = graft_budget_new(1000);
		int64_t left;
		int fds[2];
		char byte;
		pid_t pid;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			(void)close(fds[1]);
			work(100);
			assert_int_equal(write(fds[0], "x", 1), 1);
			work(rows[i].further_ms);
			_exit((int)read(fds[0], &byte, 1));
		}
		(void)close(fds[0]);
		graft_budget_add_child(budget,
				       &(struct graft_budget_child){ .pid = pid, .fd = fds[1], .allowed_ms = 400 });
		assert_int_equal(read(fds[1], &byte, 1), 1);
		if (rows[i].dismissed) {
			graft_budget_dismiss_child(budget);
			while (kill(pid, 0) == 0)
				(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		}
		(void)graft_budget_end_child(budget);
		left = graft_budget_left_ms(budget);
		if (left < rows[i].least_ms || left > rows[i].most_ms)
			fail_msg("%zu: %lld ms are left", i, (long long)left);
		graft_budget_free(budget);
	}
	assert_int_equal(sigaction(SIGCHLD, &old, NULL), 0);
}

static void test_waiting(void **state)
{
	struct graft_budget *budget = graft_budget_new(1000);

	assert_int_equal(graft_budget_wait_ms(budget, 0, 100), 100);
	assert_int_equal(graft_budget_wait_ms(budget, 60, 100), 40);
	assert_int_equal(graft_budget_wait_ms(budget, 60, 100), 0);
	assert_true(graft_budget_left_ms(budget) > 900);
	graft_budget_free(budget);
}

/* Only the process that started it can ask it, and no process once the connection is closed. */
static void test_who_asks(void **state)
{
	struct graft_budget *budget = graft_budget_new(1000);
	int fds[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_null(graft_budget_child(budget));
	graft_budget_add_child(budget, &(struct graft_budget_child){ .pid = start(0), .fd = fds[1], .inode = 7 });
	assert_int_equal(graft_budget_child(budget)->inode, 7);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(graft_budget_child(budget) ? 1 : 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	graft_budget_dismiss_child(budget);
	assert_null(graft_budget_child(budget));
	assert_int_equal(read(fds[0], &byte, 1), 0);
	(void)close(fds[0]);
	graft_budget_free(budget);
}

static void test_in_child(void **state)
{
	struct graft_budget *budget = graft_budget_new(1000);
	int status;
	pid_t pid;

	work(100);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool good;

		graft_budget_become_child(budget, 50);
		good = !is_spent(budget) && graft_budget_left_ms(budget) <= 50;
		work(60);
		_exit(good && is_spent(budget) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	graft_budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_time),       cmocka_unit_test(test_extended),
		cmocka_unit_test(test_waiting),        cmocka_unit_test(test_time_of_children),
		cmocka_unit_test(test_child_is_ended), cmocka_unit_test(test_reaped_by_another),
		cmocka_unit_test(test_who_asks),       cmocka_unit_test(test_in_child),
		cmocka_unit_test(test_shared),         cmocka_unit_test(test_sigchld_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
