/* SPDX-License-Identifier: Apache-2.0 */
/* target: what a failure leaves open. test/integration/test_apply_edits.c opens containers. */
#include <sys/wait.h>
#include <unistd.h>

#include "apply/namespace/target.h"
#include "folder.h"

/* A process that has ended and was not reaped: its directory can be opened, and its namespaces cannot. */
static pid_t make_zombie(void)
{
	pid_t pid = fork();
	siginfo_t info;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

static void test_failures_close_all(void **state)
{
	pid_t pid = make_zombie();
	int n = test_count_fds();

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct graft_target target = GRAFT_TARGET_INIT;
		struct graft_error err = { .status = GRAFT_OK };

		assert_int_equal(i == 0 ? graft_target_open_running(pid, NULL, &target, &err)
					: graft_target_open_created(pid, 0, 0, NULL, NULL, &target, &err),
				 -1);
		assert_int_equal(err.status, GRAFT_NOT_FOUND);
		assert_int_equal(test_count_fds(), n);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures_close_all),
	};

	return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
