/* SPDX-License-Identifier: Apache-2.0 */
/* SIGHUP for the engine, and for no other process, whatever happens between the look at it and the signal. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ctk/ctk_case.h"
#include "base/root.h"
#include "base/sys.h"
#include "cli/installer/installer.h"
#include "lease/lease_alive.h"

/* What happens when the pidfd is opened. */
static enum event { NOTHING, OLD_KERNEL, OTHER_NAME, OTHER_START, HAS_ENDED } happens;
static bool is_opened, was_killed; /* opened; signalled by its number */
static int renamed[2];             /* the engine has another name now */
static int name_fd;                /* in the engine: its name */

int __real_graft_pidfd_open(pid_t pid, unsigned int flags);
int __wrap_graft_pidfd_open(pid_t pid, unsigned int flags);
int __real_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number);
uint64_t __real_graft_lease_process_start(const struct graft_root *root, uint32_t pid, struct graft_arena *scratch,
					  int *ret_rc);
uint64_t __wrap_graft_lease_process_start(const struct graft_root *root, uint32_t pid, struct graft_arena *scratch,
					  int *ret_rc);

int __wrap_graft_pidfd_open(pid_t pid, unsigned int flags)
{
	int fd = __real_graft_pidfd_open(pid, flags);
	char byte;

	is_opened = true;
	if (happens == OLD_KERNEL) {
		(void)close(fd);
		errno = ENOSYS;
		return -1;
	}
	if (happens == OTHER_NAME) {
		assert_int_equal(__real_kill(pid, SIGUSR1), 0);
		assert_int_equal(read(renamed[0], &byte, 1), 1);
	}
	if (happens == HAS_ENDED) {
		assert_int_equal(__real_kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	return fd;
}

int __wrap_kill(pid_t pid, int number)
{
	was_killed = true;
	return __real_kill(pid, number);
}

uint64_t __wrap_graft_lease_process_start(const struct graft_root *root, uint32_t pid, struct graft_arena *scratch,
					  int *ret_rc)
{
	uint64_t ticks = __real_graft_lease_process_start(root, pid, scratch, ret_rc);

	return happens == OTHER_START && is_opened ? ticks + 1000 : ticks;
}

static void rename_engine(int number)
{
	(void)number;
	(void)!write(name_fd, "other", 5);
	(void)!write(renamed[1], "", 1);
}

/* Answers whoever connects, and ends on SIGHUP. */
static pid_t start_engine(const char *path, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	pid_t pid;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	(void)unlink(path);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 8), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(20);
		(void)prctl(PR_SET_NAME, name);
		name_fd = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);
		(void)signal(SIGUSR1, rename_engine);
		for (;;) {
			fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			(void)!write(fd, "x", fd >= 0);
		}
	}
	(void)close(listener);
	return pid;
}

static void test_signal(void **state)
{
	static const struct {
		const char *name;
		bool signalled, by_number;
		const char *said;
	} rows[] = {
		[NOTHING] = { "containerd", true, false, "" },
		[OLD_KERNEL] = { "containerd", true, true, "" },
		[OTHER_NAME] = { "containerd", false, false, "containerd has ended meanwhile: it reads its" },
		[OTHER_START] = { "containerd", false, false, "containerd has ended meanwhile: it reads its" },
		[HAS_ENDED] = { "containerd", false, false, "containerd has ended meanwhile: it reads its" },
	};
	struct ctk_case *test = *state;
	struct installer_options o;
	struct graft_error err = { .status = GRAFT_OK };
	int fd;

	test->ctk.log.max = GRAFT_LOG_INFO;
	installer_options_init(&o);
	o.base.ctk = &test->ctk;
	o.install_dir = test->directory;
	o.socket = graft_arena_strdup(test->ctk.arena, case_path(test, "sock"));
	o.engine = &graft_engine_containerd;
	o.config = "/none";
	o.restart = INSTALLER_RESTART_SIGNAL;
	fd = __real_graft_pidfd_open(getpid(), 0);
	if (fd < 0)
		skip();
	(void)close(fd);
	assert_int_equal(pipe2(renamed, O_CLOEXEC), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		pid_t pid = start_engine(o.socket, rows[i].name);
		int status = 0;

		happens = (enum event)i;
		is_opened = was_killed = false;
		assert_int_equal(installer_engine_reload(&o, true, 1, &err), 0);
		if (rows[i].said[0] != '\0')
			assert_non_null(strstr(test->said, rows[i].said));
		assert_int_equal(was_killed, rows[i].by_number);
		if (!rows[i].signalled && happens != HAS_ENDED) {
			assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
			(void)__real_kill(pid, SIGKILL);
		}
		if (happens != HAS_ENDED) {
			assert_int_equal(waitpid(pid, &status, 0), pid);
			assert_int_equal(WTERMSIG(status), rows[i].signalled ? SIGHUP : SIGKILL);
		}
	}
	(void)close(renamed[0]);
	(void)close(renamed[1]);
	assert_int_equal(unlink(o.socket), 0);
}

/* Who answers on the socket and has another name is left alone. */
static void test_stranger(void **state)
{
	struct ctk_case *test = *state;
	struct installer_options o;
	struct graft_error err = { .status = GRAFT_OK };
	char text[800], expected[400];
	pid_t pid;

	installer_options_init(&o);
	o.base.ctk = &test->ctk;
	o.install_dir = test->directory;
	o.socket = graft_arena_strdup(test->ctk.arena, case_path(test, "sock"));
	o.engine = &graft_engine_containerd;
	o.restart = INSTALLER_RESTART_SIGNAL;
	pid = start_engine(o.socket, "stranger");
	assert_int_equal(installer_engine_reload(&o, true, 1, &err), -1);
	(void)snprintf(
	    expected, sizeof(expected),
	    "unable to signal containerd: no process of containerd answers on %s. Does the pod have hostPID: true?",
	    o.socket);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)), expected);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	(void)__real_kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(unlink(o.socket), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_signal, case_open, case_close),
		cmocka_unit_test_setup_teardown(test_stranger, case_open, case_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
