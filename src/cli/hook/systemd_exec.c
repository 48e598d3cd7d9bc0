/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_exec: graft_systemd_scope_allow() for a statically linked program, by means of
 * graft-systemd. It is part of the program rather than a library, so that the linker finds this
 * function first and leaves out the version that loads libsystemd.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apply/cgroup/systemd_scope.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/helper.h"
#include "cli/hook/systemd_words.h"

#define ANSWER_MAX ((size_t)1 << 19) /* the arena has room for a copy of it */
#define WAIT_MS    5000              /* systemd's own limit is 2 s; the rest is for a busy machine */

struct child {
	pid_t pid;
	int answer_fd;
};

static void child_done(struct child *child)
{
	if (child->answer_fd >= 0)
		(void)close(child->answer_fd);
	if (child->pid <= 0)
		return;
	(void)kill(child->pid, SIGKILL);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static char **make_words(pid_t pid, const struct graft_scope_device *devices, size_t n, struct graft_arena *arena)
{
	char **words = graft_arena_list(arena, n + 3, sizeof(*words));

	if (!words)
		return NULL;
	words[0] = graft_arena_strdup(arena, HOOK_SYSTEMD_PROGRAM);
	words[1] = graft_arena_printf(arena, "%d", (int)pid);
	for (size_t i = 0; i < n; i++)
		words[i + 2] = graft_arena_printf(arena, "%u:%u:%s", devices[i].major, devices[i].minor,
						  devices[i].access);
	return graft_arena_failed(arena) ? NULL : words;
}

_Noreturn static void become_graft_systemd(char *const *words, int answer_fd, pid_t parent)
{
	char *const environment[] = { NULL };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent &&
	    dup2(answer_fd, STDOUT_FILENO) >= 0)
		cli_helper_exec(HOOK_SYSTEMD_PROGRAM, words, environment);
	(void)dprintf(answer_fd,
		      "%cthe program that informs systemd cannot be started: " GRAFT_LIBEXEC_DIRECTORY
		      "/" HOOK_SYSTEMD_PROGRAM ": %s\n",
		      HOOK_SYSTEMD_ERROR, strerror(errno));
	_exit(HOOK_SYSTEMD_FAILED);
}

static int start_graft_systemd(char *const *words, struct child *ret_child, struct graft_error *err)
{
	pid_t parent = getpid();
	int fds[2], sys;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return graft_fail_errno(err, errno, "pipe creation failed");
	ret_child->answer_fd = fds[0];
	ret_child->pid = fork();
	sys = errno;
	if (ret_child->pid == 0)
		become_graft_systemd(words, fds[1], parent);
	(void)close(fds[1]);
	return ret_child->pid < 0 ? graft_fail_errno(err, sys, "process creation failed") : 0;
}

/* Reads everything that the child writes, until it closes the pipe. */
static int listen_to_graft_systemd(const struct child *child, struct graft_buffer *answer, struct graft_error *err)
{
	int64_t deadline = graft_clock_ms() + WAIT_MS;

	for (;;) {
		struct pollfd pollfd = { .fd = child->answer_fd, .events = POLLIN };
		int64_t left = deadline - graft_clock_ms();
		char bytes[1024];
		ssize_t n;

		if (left <= 0)
			return graft_fail(err, GRAFT_TIMEOUT, 0, "systemd did not answer in time");
		if (poll(&pollfd, 1, (int)left) <= 0)
			continue;
		n = read(child->answer_fd, bytes, sizeof(bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return graft_fail_errno(err, errno, HOOK_SYSTEMD_PROGRAM ": cannot read its answer");
		if (n == 0)
			return graft_buffer_failed(answer) ? graft_fail_memory(err) : 0;
		graft_buffer_add(answer, bytes, (size_t)n);
	}
}

/* Passes the lines on to the log. Returns the last error, or NULL. */
static const char *hand_on(char *lines, const struct graft_log *log)
{
	const char *failure = NULL;
	char *rest = lines;

	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		if (line[0] == HOOK_SYSTEMD_ERROR)
			failure = line + 1;
		else if (line[0] == HOOK_SYSTEMD_DEBUG)
			graft_debug(log, "%s", line + 1);
		else if (line[0] == HOOK_SYSTEMD_INFO)
			graft_info(log, "%s", line + 1);
	}
	return failure;
}

static int judge_answer(struct child *child, const char *failure, struct graft_error *err)
{
	int status = 0;
	pid_t pid;

	while ((pid = waitpid(child->pid, &status, 0)) < 0 && errno == EINTR)
		;
	child->pid = 0;
	if (failure)
		return graft_fail(err, GRAFT_PROGRAM, 0, "%s", failure);
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) <= HOOK_SYSTEMD_TOLD)
		return WEXITSTATUS(status) == HOOK_SYSTEMD_TOLD;
	return graft_fail(err, GRAFT_PROGRAM, 0, HOOK_SYSTEMD_PROGRAM " failed");
}

int graft_systemd_scope_allow(pid_t pid, const struct graft_scope_device *devices, size_t n_devices,
			      const struct graft_log *log, struct graft_error *err)
{
	auto_arena struct graft_arena *arena = graft_arena_new(ANSWER_MAX * 2);
	__attribute__((cleanup(child_done))) struct child child = { .answer_fd = -1 };
	auto_buffer struct graft_buffer answer = { .max = ANSWER_MAX };
	char **words, *lines;

	if (n_devices == 0)
		return 0;
	words = arena ? make_words(pid, devices, n_devices, arena) : NULL;
	if (!words)
		return graft_fail_memory(err);
	if (start_graft_systemd(words, &child, err) < 0 || listen_to_graft_systemd(&child, &answer, err) < 0)
		return -1;
	lines = graft_arena_strndup(arena, graft_buffer_text(&answer), answer.length);
	return lines ? judge_answer(&child, hand_on(lines, log), err) : graft_fail_memory(err);
}
