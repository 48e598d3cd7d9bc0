/* SPDX-License-Identifier: Apache-2.0 */
/* kube_question: a process and its answer, an error and a text. Does not know what is asked. */
#include "kubernetes/kube_question.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/sys.h"

#define OLD_FD_MAX 4096 /* for kernels without close_range(2) */

/*
 * Leaves standard error open, and `fd` as descriptor 3. Otherwise a socket of the program would
 * stay open here after the program has closed it.
 */
static void leave_answer_open(int fd)
{
	if (fd == 3 ? fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 : dup3(fd, 3, O_CLOEXEC) < 0)
		_exit(2);
	if (graft_close_range(4, ~0u, 0) == 0)
		return;
	/* BASELINE 5.9: close_range(2). */
	for (int other = 4; other < OLD_FD_MAX; other++)
		(void)close(other);
}

/* Signals stay blocked as they are: they are meant for the parent, whose end ends this process. */
_Noreturn static void ask_and_tell(const struct graft_kube_asking *asking, pid_t parent, int fd)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer text = { .max = asking->max };

	(void)prctl(PR_SET_NAME, asking->name, 0, 0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(2);
	(void)alarm(asking->limit_s);
	leave_answer_open(fd);
	if (asking->ask(asking->arg, &text, &err) == 0)
		err.status = GRAFT_OK;
	if (graft_buffer_failed(&text))
		(void)graft_fail_memory(&err);
	/* A hint is a pointer. */
	err.hint = NULL;
	_exit(graft_write_all(3, &err, sizeof(err)) < 0 || graft_write_all(3, graft_buffer_text(&text), text.length) < 0
		  ? 2
		  : 0);
}

int graft_kube_question_begin(struct graft_kube_question *question, const struct graft_kube_asking *asking,
			      struct graft_error *err)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	*question = (struct graft_kube_question){ .fd = -1, .answer = { .max = sizeof(*err) + asking->max } };
	if (pipe2(fds, O_CLOEXEC) < 0)
		return graft_fail_errno(err, errno, "pipe creation failed");
	pid = fork();
	if (pid == 0)
		ask_and_tell(asking, parent, fds[1]);
	(void)close(fds[1]);
	if (pid < 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
		int sys = errno;

		(void)close(fds[0]);
		return graft_fail_errno(err, sys, "process creation failed");
	}
	question->pid = pid;
	question->fd = fds[0];
	return 0;
}

bool graft_kube_question_read(struct graft_kube_question *question)
{
	char bytes[8192];
	ssize_t n;

	while ((n = read(question->fd, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR)) {
		if (n > 0)
			graft_buffer_add(&question->answer, bytes, (size_t)n);
	}
	return n == 0 || errno != EAGAIN;
}

int graft_kube_question_take(struct graft_kube_question *question, const char **ret_text, size_t *ret_n,
			     struct graft_error *err)
{
	const struct graft_buffer *answer = &question->answer;
	struct graft_error said = { .status = GRAFT_OK };

	/*
	 * The process has ended, or will at its next write; its PID may belong to another process
	 * by now.
	 */
	question->pid = 0;
	if (graft_buffer_failed(answer) || answer->length < sizeof(said))
		return 1;
	memcpy(&said, answer->bytes, sizeof(said));
	if (said.status != GRAFT_OK) {
		*err = said;
		return -1;
	}
	*ret_text = answer->bytes + sizeof(said);
	*ret_n = answer->length - sizeof(said);
	return 0;
}

void graft_kube_question_done(struct graft_kube_question *question)
{
	if (question->pid > 0)
		(void)kill(question->pid, SIGKILL);
	if (question->fd >= 0)
		(void)close(question->fd);
	graft_buffer_done(&question->answer);
	question->pid = 0;
	question->fd = -1;
}
