/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "daemon/config_link.h"

static char folder[64];

static int setup(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/graft-link-XXXXXX");
	if (!mkdtemp(folder) || chdir(folder) < 0 || mkdir("directory", 0700) < 0)
		return -1;
	(void)close(open("a", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	(void)close(open("b", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static const char *target_of(const char *link)
{
	static char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target) - 1);

	target[n > 0 ? n : 0] = '\0';
	return target;
}

static void test_link(void **state)
{
	struct graft_error err;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/new/config.yaml", folder);
	assert_int_equal(config_link_set(path, "/etc/hostname", &err), 1);
	assert_string_equal(target_of(path), "/etc/hostname");
	assert_int_equal(config_link_set(path, "/etc/hostname", &err), 0);
	assert_int_equal(config_link_set(path, "", &err), 1);
	assert_string_equal(target_of(path), "/dev/null");
	assert_int_equal(config_link_set(path, "", &err), 0);
	/* One that leads nowhere is replaced, and a file, too. */
	assert_int_equal(config_link_set(path, "/nowhere", &err), 1);
	assert_int_equal(config_link_set(path, "/nowhere", &err), 1);
	assert_int_equal(config_link_set("a", "b", &err), 1);
	assert_string_equal(target_of("a"), "b");
	/* By way of another link it is the same file. */
	assert_int_equal(symlink("a", "c"), 0);
	assert_int_equal(config_link_set("c", "b", &err), 0);

	assert_int_equal(config_link_set("directory", "b", &err), -1);
	assert_string_equal(err.msg, "cannot link directory to b");
	assert_int_equal(err.sys, EISDIR);
	assert_int_equal(config_link_set("b/x", "b", &err), -1);
	assert_int_equal(err.sys, ENOTDIR);
}

/* A child that was started by these words, and says by its end which signal it got. */
static pid_t start_as(const char *first_argument)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/bin/sleep", first_argument, "60", NULL);
		_exit(127);
	}
	return pid;
}

/* Waits until the child is what it is to be: before that, it has our own arguments. */
static void wait_until_started(pid_t pid, const char *first_argument)
{
	char path[64], text[128] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	for (int i = 0; i < 500 && strcmp(text, first_argument) != 0; i++) {
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);

		text[n > 0 ? n : 0] = '\0';
		(void)usleep(10000);
	}
	assert_string_equal(text, first_argument);
}

static int signal_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) == 0)
		return 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void test_signal(void **state)
{
	static const struct {
		const char *started_as;
		bool is_meant;
	} rows[] = {
		{ "graft-test-plugin", true },    { "/usr/bin/graft-test-plugin", true },
		{ "graft-test-plugin2", false },  { "a-graft-test-plugin", false },
		{ "graft-test-plugin/x", false },
	};
	pid_t pids[GRAFT_COUNT(rows)];
	struct graft_error err;
	size_t n;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		pids[i] = start_as(rows[i].started_as);
		wait_until_started(pids[i], rows[i].started_as);
	}
	assert_int_equal(config_link_signal("/proc", "graft-test-plugin", SIGUSR1, NULL, &n, &err), 0);
	assert_int_equal(n, 2);
	(void)usleep(100000);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_int_equal(signal_of(pids[i]), rows[i].is_meant ? SIGUSR1 : 0);
		if (!rows[i].is_meant) {
			(void)kill(pids[i], SIGKILL);
			(void)waitpid(pids[i], NULL, 0);
		}
	}
	assert_int_equal(config_link_signal("/proc", "graft-test-none", SIGUSR1, NULL, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(config_link_signal("/nowhere", "x", SIGUSR1, NULL, &n, &err), -1);
	assert_string_equal(err.msg, "cannot list /nowhere");
}

/* Only who has started before a time gets the signal. */
static void test_signal_by_time(void **state)
{
	struct timespec before, after;
	struct graft_error err;
	pid_t pid;
	size_t n;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &before), 0);
	(void)usleep(100000);
	pid = start_as("graft-test-old) plugin");
	wait_until_started(pid, "graft-test-old) plugin");
	(void)usleep(100000);
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &after), 0);
	assert_int_equal(config_link_signal("/proc", "graft-test-old) plugin", SIGUSR1, &before, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(signal_of(pid), 0);
	assert_int_equal(config_link_signal("/proc", "graft-test-old) plugin", SIGUSR1, &after, &n, &err), 0);
	assert_int_equal(n, 1);
	(void)usleep(100000);
	assert_int_equal(signal_of(pid), SIGUSR1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_signal_by_time),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
