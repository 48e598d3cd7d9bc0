/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "kubernetes/kube_question.h"

enum answers { ANSWERS, LONG, FAILS, DIES, WAITS };

/* `arg` says what is done, and which descriptor must not be open. */
struct order {
	enum answers what;
	int closed_fd;
};

static int answer_as_told(const void *arg, struct graft_buffer *answer, struct graft_error *err)
{
	const struct order *order = arg;

	if (write(order->closed_fd, "x", 1) >= 0 || errno != EBADF)
		return graft_fail(err, GRAFT_INTERNAL, 0, "descriptor %d is open", order->closed_fd);
	switch (order->what) {
	case ANSWERS:
		graft_buffer_string(answer, "the answer");
		break;
	case LONG:
		for (int i = 0; i < 1000; i++)
			graft_buffer_string(answer, "0123456789");
		break;
	case FAILS:
		(void)graft_fail(err, GRAFT_MISMATCH, EPERM, "nvml error: %s", "another driver");
		return graft_wrap(err, "a noun");
	case DIES:
		(void)raise(SIGKILL);
		break;
	case WAITS:
		for (;;)
			(void)pause();
	}
	return 0;
}

static void begin(struct graft_kube_question *question, struct order *order, unsigned int limit_s, int fds[2])
{
	const struct graft_kube_asking asking = {
		.name = "test", .limit_s = limit_s, .max = 5000, .ask = answer_as_told, .arg = order
	};

	assert_int_equal(pipe(fds), 0);
	order->closed_fd = fds[1];
	assert_int_equal(graft_kube_question_begin(question, &asking, NULL), 0);
	(void)close(fds[1]);
}

static void reap_asker(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Its text is `text`, cut. */
static int answer_of(enum answers what, unsigned int limit_s, char text[64], struct graft_error *err)
{
	struct graft_kube_question question;
	struct order order = { .what = what };
	const char *answer;
	size_t n;
	int fds[2], rc;
	pid_t pid;

	begin(&question, &order, limit_s, fds);
	pid = question.pid;
	for (;;) {
		struct pollfd pollfd = { .fd = question.fd, .events = POLLIN };

		assert_int_equal(poll(&pollfd, 1, 10000), 1);
		if (graft_kube_question_read(&question))
			break;
	}
	rc = graft_kube_question_take(&question, &answer, &n, err);
	if (rc == 0)
		(void)snprintf(text, 64, "%.*s", (int)(n < 63 ? n : 63), answer);
	graft_kube_question_done(&question);
	assert_int_equal(question.fd, -1);
	assert_int_equal(question.pid, 0);
	reap_asker(pid);
	(void)close(fds[0]);
	return rc;
}

static void test_answers(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	char text[768];

	assert_int_equal(answer_of(ANSWERS, 0, text, &err), 0);
	assert_string_equal(text, "the answer");

	assert_int_equal(answer_of(FAILS, 0, text, &err), -1);
	assert_int_equal(err.status, GRAFT_MISMATCH);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "a noun: nvml error: another driver: operation not permitted");

	assert_int_equal(answer_of(LONG, 0, text, &err), -1);
	assert_int_equal(err.status, GRAFT_NO_MEMORY);

	assert_int_equal(answer_of(DIES, 0, text, &err), 1);
}

/* One that takes too long ends. */
static void test_limit(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	char text[64];

	assert_int_equal(answer_of(WAITS, 1, text, &err), 1);
}

/* One that is given up ends at once, though it waits. */
static void test_done(void **state)
{
	struct graft_kube_question question;
	struct order order = { .what = WAITS };
	int fds[2];
	pid_t pid;

	begin(&question, &order, 0, fds);
	pid = question.pid;
	assert_false(graft_kube_question_read(&question));
	graft_kube_question_done(&question);
	reap_asker(pid);
	graft_kube_question_done(&question);
	(void)close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
