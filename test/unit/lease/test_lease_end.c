/* SPDX-License-Identifier: Apache-2.0 */
/* Signals for the holder of a lease: by pidfd, by number where the kernel has none, and to nobody once it has ended. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../arena.h"
#include "base/cleanup.h"
#include "base/sys.h"
#include "lease/lease_end.h"
#include "lease/lease_holder.h"

int __real_graft_pidfd_open(pid_t pid, unsigned int flags);
int __wrap_graft_pidfd_open(pid_t pid, unsigned int flags);

static struct graft_lease lease;
static int pidfd_errno;    /* != 0: there are no pidfds */
static bool another_comes; /* when the pidfd is opened, the number is already another process's */

int __wrap_graft_pidfd_open(pid_t pid, unsigned int flags)
{
	if (another_comes)
		lease.holder.start_time--;
	errno = pidfd_errno;
	return pidfd_errno != 0 ? -1 : __real_graft_pidfd_open(pid, flags);
}

static void test_signal(void **state)
{
	static const struct {
		const char *name;
		int pidfd_errno;
		bool another_comes, is_ended;
		int number;
	} rows[] = {
		{ "by pidfd", 0, false, true, SIGTERM },
		{ "a kernel without pidfds", ENOSYS, false, true, SIGTERM },
		{ "a filter of system calls", EPERM, false, true, SIGKILL },
		{ "only counted", 0, false, false, 0 },
		{ "another process has its number", 0, true, false, SIGKILL },
		{ "the same without pidfds", ENOSYS, true, false, SIGKILL },
		{ "it has just ended", ESRCH, false, false, SIGKILL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_lease_now struct graft_lease_now now = GRAFT_LEASE_NOW_INIT;
		struct graft_error err = { .status = GRAFT_OK };
		pid_t child = fork();
		int status = 0;
		size_t n = 0;

		if (child == 0) {
			(void)alarm(20);
			(void)pause();
			_exit(0);
		}
		print_message("# %s\n", rows[i].name);
		assert_int_equal(graft_lease_now_read(&now, arena, &err), 0);
		lease = (struct graft_lease){ .id = "abcdefgh2345", .boot = now.boot };
		assert_int_equal(graft_lease_holder_of_process(child, arena, &lease.holder, &err), 0);
		lease.holder.kind = GRAFT_HOLDER_PROCESS;
		pidfd_errno = rows[i].pidfd_errno;
		another_comes = rows[i].another_comes;
		assert_int_equal(graft_lease_signal(&now, &lease, rows[i].number, arena, &n, &err), 0);
		assert_int_equal(n, 1);
		another_comes = false;
		/* Nothing else ends it. */
		if (!rows[i].is_ended) {
			assert_int_equal(waitpid(child, &status, WNOHANG), 0);
			(void)kill(child, SIGUSR1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(WTERMSIG(status), rows[i].is_ended ? rows[i].number : SIGUSR1);
		assert_int_equal(graft_lease_signal(&now, &lease, SIGKILL, arena, &n, &err), 0);
		assert_int_equal(n, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_signal) };

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
