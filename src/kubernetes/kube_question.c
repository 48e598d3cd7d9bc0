/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_question: a process and its answer, which is an error and the text of kept facts. Does not
 * know what is asked.
 */
#include "kubernetes/kube_question.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/sys.h"

#define ANSWER_MAX (sizeof(struct graft_error) + ((size_t)4 << 20))
#define OLD_FD_MAX 4096 /* for kernels without close_range(2) */

void graft_kube_question_leave_open(int fd)
{
	if (fd == 3 ? fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 : dup3(fd, 3, O_CLOEXEC) < 0)
		_exit(2);
	if (graft_close_range(4, ~0u, 0) == 0)
		return;
	/* BASELINE 5.9: close_range(2). */
	for (int other = 4; other < OLD_FD_MAX; other++)
		(void)close(other);
}

_Noreturn static void write_answer(const struct graft_error *err, const struct graft_buffer *facts)
{
	struct graft_buffer answer = { .max = ANSWER_MAX };

	graft_buffer_add(&answer, err, sizeof(*err));
	graft_buffer_add(&answer, graft_buffer_text(facts), facts->length);
	_exit(graft_buffer_failed(&answer) || graft_write_all(3, answer.bytes, answer.length) < 0 ? 2 : 0);
}

/*
 * Signals stay blocked as they are: those who send them mean the parent, whose end ends this
 * process.
 */
_Noreturn static void ask_and_tell(pid_t parent, int fd, graft_kube_asker *ask, const void *arg,
				   struct graft_arena *arena, struct graft_kept_facts *facts)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer text = { .max = ANSWER_MAX };

	(void)prctl(PR_SET_NAME, "graft:[facts]", 0, 0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(2);
	graft_kube_question_leave_open(fd);
	if (ask(arg, arena, facts, &err) == 0) {
		err.status = GRAFT_OK;
		graft_kept_write(facts, &text);
	}
	if (graft_buffer_failed(&text))
		(void)graft_fail_memory(&err);
	write_answer(&err, &text);
}

int graft_kube_question_begin(struct graft_kube_question *question, graft_kube_asker *ask, const void *arg,
			      struct graft_arena *arena, struct graft_kept_facts *facts, struct graft_error *err)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	*question = (struct graft_kube_question){ .fd = -1, .answer = { .max = ANSWER_MAX } };
	if (pipe2(fds, O_CLOEXEC) < 0)
		return graft_fail_errno(err, errno, "pipe creation failed");
	pid = fork();
	if (pid == 0)
		ask_and_tell(parent, fds[1], ask, arg, arena, facts);
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

/* An answer that is there as a whole, from a process of the same program. */
static int parse_facts_answer(const struct graft_buffer *answer, struct graft_arena *arena,
			      struct graft_kept_facts *facts, struct graft_error *err)
{
	struct graft_error said = { .status = GRAFT_OK }, why;
	struct graft_kept_facts kept = { .version = 0 };

	if (graft_buffer_failed(answer) || answer->length < sizeof(said))
		return graft_fail(err, GRAFT_NVML, 0, "nvml error: the process that asked ended without an answer");
	memcpy(&said, answer->bytes, sizeof(said));
	if (said.status != GRAFT_OK) {
		*err = said;
		return -1;
	}
	if (graft_record_read(&graft_kept_facts_record, answer->bytes + sizeof(said), answer->length - sizeof(said),
			      arena, &kept, &why) < 0)
		return why.status == GRAFT_NO_MEMORY
			   ? graft_fail_memory(err)
			   : graft_fail(err, GRAFT_NVML, 0, "nvml error: the answer is malformed: %s", why.msg);
	*facts = kept;
	return 0;
}

int graft_kube_question_take(struct graft_kube_question *question, struct graft_arena *arena,
			     struct graft_kept_facts *facts, struct graft_error *err)
{
	int rc = parse_facts_answer(&question->answer, arena, facts, err);

	/* It has ended, or will by writing; its number may be another process's already. */
	question->pid = 0;
	graft_kube_question_done(question);
	return rc;
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
