/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/program.h"

static void count_hang_up(void *arg)
{
	(*(int *)arg)++;
}

static void end_after(useconds_t us)
{
	if (fork() != 0)
		return;
	(void)usleep(us);
	_exit(0);
}

/* Children that nobody waits for any more, as one that the driver held: none stays a zombie. */
static void test_reaps(void **state)
{
	auto_loop struct graft_loop loop = { 0 };
	struct program_signals signals = PROGRAM_SIGNALS_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	int n = 0;

	assert_int_equal(program_watch_signals(&signals, &loop, NULL, count_hang_up, &n, &err), 0);
	end_after(0);
	end_after(0);
	end_after(200000);
	for (int64_t end = graft_clock_ms() + 10000; graft_clock_ms() < end;) {
		siginfo_t info;

		assert_int_equal(graft_loop_turn(&loop, 50, &err), 0);
		if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | WNOHANG) < 0 && errno == ECHILD)
			break;
	}
	errno = 0;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	/* The other signals are what they were. */
	assert_int_equal(raise(SIGHUP), 0);
	assert_int_equal(graft_loop_turn(&loop, 5000, &err), 0);
	assert_int_equal(n, 1);
	assert_false(loop.stopped);
	assert_int_equal(raise(SIGTERM), 0);
	assert_int_equal(graft_loop_turn(&loop, 5000, &err), 0);
	assert_true(loop.stopped);
	graft_loop_forget(&loop, &signals.watch);
	program_signals_done(&signals);
}

/* The environment, of which one look comes with a signal. */
static const char *hang_up_meanwhile(const char *name)
{
	(void)raise(SIGHUP);
	return NULL;
}

static int see_signals(const struct graft_kube_sources *sources, const struct graft_kube_config *config,
		       struct graft_arena *arena)
{
	sigset_t pending;

	assert_int_equal(sigpending(&pending), 0);
	assert_true(sigismember(&pending, SIGHUP));
	return 3;
}

/* A signal that comes while the configuration is read does not end the program. */
static void test_early_signal(void **state)
{
	char name[] = "nvidia-device-plugin", *argv[] = { name, NULL };
	const struct timespec no_time = { .tv_sec = 0 };
	sigset_t before, hang_up;

	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &before), 0);
	assert_int_equal(program_main(&graft_kube_plugin_command, 1, argv, hang_up_meanwhile, see_signals), 3);
	(void)sigemptyset(&hang_up);
	(void)sigaddset(&hang_up, SIGHUP);
	assert_int_equal(sigtimedwait(&hang_up, NULL, &no_time), SIGHUP);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_early_signal),
		cmocka_unit_test(test_reaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
