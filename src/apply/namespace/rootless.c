/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootless: a child process, a socket pair and one message format. Knows nothing of what is done in
 * the child.
 */
#include "apply/namespace/rootless.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

struct graft_rootless_child {
	int fd;
};

/* Parent and child are the same program, so a struct can serve as the format. */
struct message {
	bool is_result; /* else a step */
	int rc;
	char step[32];
	struct graft_error error;
};

static ssize_t send_message(int fd, const struct message *message)
{
	ssize_t n;

	do
		n = send(fd, message, sizeof(*message), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n;
}

/*
 * SECURITY: the other side may be a child in the container's namespaces: its texts get an end, and
 * no pointer from it is followed.
 */
static ssize_t receive_message(int fd, struct message *message)
{
	ssize_t n;

	do
		n = recv(fd, message, sizeof(*message), 0);
	while (n < 0 && errno == EINTR);
	message->step[sizeof(message->step) - 1] = '\0';
	message->error.msg[sizeof(message->error.msg) - 1] = '\0';
	message->error.ctx[sizeof(message->error.ctx) - 1] = '\0';
	message->error.hint = NULL;
	return n;
}

int graft_rootless_step(void *arg, const char *step, struct graft_error *err)
{
	const struct graft_rootless_child *child = arg;
	struct message message = { .is_result = false };

	(void)snprintf(message.step, sizeof(message.step), "%s", step);
	if (send_message(child->fd, &message) < 0 || receive_message(child->fd, &message) <= 0)
		return graft_fail(err, GRAFT_IO, errno, "process communication failed");
	if (message.rc < 0 && err)
		*err = message.error;
	return message.rc;
}

static _Noreturn void
run_rootless_child(int fd, int (*work)(void *arg, struct graft_rootless_child *child, struct graft_error *err),
		   void *arg)
{
	struct graft_rootless_child child = { .fd = fd };
	struct message result = { .is_result = true };

	result.rc = work(arg, &child, &result.error);
	_exit(send_message(fd, &result) < 0 ? 1 : 0);
}

/* Serves steps until the result arrives. */
static int serve(int fd, int (*step)(void *step_arg, const char *step, struct graft_error *err), void *step_arg,
		 struct message *ret_result)
{
	struct message message;

	while (receive_message(fd, &message) == (ssize_t)sizeof(message)) {
		if (message.is_result) {
			*ret_result = message;
			return 0;
		}
		message.rc = step ? step(step_arg, message.step, &message.error) : 0;
		if (send_message(fd, &message) < 0)
			break;
	}
	return -1;
}

static void reap_rootless_child(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

int graft_rootless_run(int (*work)(void *arg, struct graft_rootless_child *child, struct graft_error *err), void *arg,
		       int (*step)(void *step_arg, const char *step, struct graft_error *err), void *step_arg,
		       struct graft_error *err)
{
	struct message result = { .rc = -1 };
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return graft_fail_errno(err, errno, "process creation failed");
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		run_rootless_child(pair[1], work, arg);
	}
	if (pid < 0)
		(void)graft_fail_errno(&result.error, errno, "process creation failed");
	(void)close(pair[1]);
	if (pid > 0 && serve(pair[0], step, step_arg, &result) < 0)
		(void)graft_fail(&result.error, GRAFT_INTERNAL, 0, "process terminated without a result");
	(void)close(pair[0]);
	if (pid > 0)
		reap_rootless_child(pid);
	if (result.rc < 0 && err)
		*err = result.error;
	return result.rc;
}
