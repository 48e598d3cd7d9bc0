/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "kubernetes/kube_question.h"

enum answers { ANSWERS, FAILS, DIES, WAITS };

/* `arg` says what is done, and which descriptor must not be open. */
struct order {
	enum answers what;
	int closed_fd;
};

static int answer_as_told(const void *arg, struct graft_arena *in, struct graft_kept_facts *facts,
			  struct graft_error *err)
{
	const struct order *order = arg;

	if (write(order->closed_fd, "x", 1) >= 0 || errno != EBADF)
		return graft_fail(err, GRAFT_INTERNAL, 0, "descriptor %d is open", order->closed_fd);
	switch (order->what) {
	case ANSWERS:
		facts->n_asked = 7;
		facts->nvml.driver_version = graft_arena_strdup(in, "535.1");
		(void)graft_arena_push_string(in, &facts->nvml.unsettled, &facts->nvml.n_unsettled, "not yet");
		break;
	case FAILS:
		(void)graft_fail(err, GRAFT_MISMATCH, EPERM, "nvml error: %s", "another driver");
		return graft_wrap(err, "a noun");
	case DIES:
		(void)raise(SIGKILL);
		break;
	case WAITS:
		(void)pause();
		break;
	}
	return 0;
}

static void begin(struct graft_kube_question *question, struct order *order, struct graft_kept_facts *facts, int fds[2])
{
	*facts = (struct graft_kept_facts){ .version = GRAFT_KEPT_VERSION, .boot_id = "b" };
	assert_int_equal(pipe(fds), 0);
	order->closed_fd = fds[1];
	assert_int_equal(graft_kube_question_begin(question, answer_as_told, order, arena, facts, NULL), 0);
	(void)close(fds[1]);
}

static void reap_asker(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int answer_of(enum answers what, struct graft_kept_facts *facts, struct graft_error *err)
{
	struct graft_kube_question question;
	struct order order = { .what = what };
	int fds[2], rc;
	pid_t pid;

	begin(&question, &order, facts, fds);
	pid = question.pid;
	for (;;) {
		struct pollfd pollfd = { .fd = question.fd, .events = POLLIN };

		assert_int_equal(poll(&pollfd, 1, 10000), 1);
		if (graft_kube_question_read(&question))
			break;
	}
	rc = graft_kube_question_take(&question, arena, facts, err);
	assert_int_equal(question.fd, -1);
	assert_int_equal(question.pid, 0);
	reap_asker(pid);
	(void)close(fds[0]);
	return rc;
}

static void test_answers(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kept_facts facts;
	char text[768];

	(void)state;
	assert_int_equal(answer_of(ANSWERS, &facts, &err), 0);
	assert_int_equal(facts.version, GRAFT_KEPT_VERSION);
	assert_string_equal(facts.boot_id, "b");
	assert_int_equal(facts.n_asked, 7);
	assert_string_equal(facts.nvml.driver_version, "535.1");
	assert_int_equal(facts.nvml.n_unsettled, 1);

	assert_int_equal(answer_of(FAILS, &facts, &err), -1);
	assert_int_equal(err.status, GRAFT_MISMATCH);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "a noun: nvml error: another driver: operation not permitted");

	assert_int_equal(answer_of(DIES, &facts, &err), -1);
	assert_int_equal(err.status, GRAFT_NVML);
	assert_string_equal(err.msg, "nvml error: the process that asked ended without an answer");
}

/* One that is given up ends at once, though it waits. */
static void test_done(void **state)
{
	struct graft_kube_question question;
	struct order order = { .what = WAITS };
	struct graft_kept_facts facts;
	int fds[2];
	pid_t pid;

	(void)state;
	begin(&question, &order, &facts, fds);
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
		cmocka_unit_test_setup_teardown(test_answers, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_done, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
