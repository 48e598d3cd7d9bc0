/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget: the processor time of this process and of its children, which run one at a time. Does not
 * know what the time is spent on.
 */
#include "base/budget.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"

#define REAP_WAIT_MS 2000

struct graft_budget {
	int64_t limit_us;          /* of our own processor time, as CLOCK_PROCESS_CPUTIME_ID shows it */
	int64_t extended_us;       /* part of limit_us */
	int64_t given_us;          /* to a new budget */
	int64_t children_us;       /* spent by children that have ended, plus the whole allowance of the current one */
	int64_t waited_ms;         /* for answers of children */
	struct timespec looked_at; /* CLOCK_MONOTONIC_COARSE */
	bool spent, shared;
	struct graft_budget_child child; /* pid 0: none */
	pid_t parent;                    /* the process that started the child */
	int64_t child_us;                /* what it had used when it was dismissed; -1: unknown */
};

static int64_t own_time_us(void)
{
	struct timespec time = { 0 };

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/*
 * Returns the time that another process has used so far, or -1 if it is gone. For children that
 * leave nothing behind: their parent ignores SIGCHLD.
 */
static int64_t time_of_process_us(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) < 0)
		return -1;
	return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static int64_t left_us(const struct graft_budget *budget)
{
	return budget->limit_us - budget->children_us - own_time_us();
}

struct graft_budget *graft_budget_new(int64_t cpu_ms)
{
	struct graft_budget *budget = calloc(1, sizeof(*budget));

	if (budget) {
		budget->given_us = cpu_ms * 1000;
		budget->limit_us = own_time_us() + budget->given_us;
	}
	return budget;
}

struct graft_budget *graft_budget_free(struct graft_budget *budget)
{
	if (budget)
		(void)graft_budget_end_child(budget);
	free(budget);
	return NULL;
}

/* The coarse clock ticks every few milliseconds, and costs no system call. */
static bool has_ticked(struct graft_budget *budget)
{
	struct timespec now = { 0 };

	if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0 && now.tv_nsec == budget->looked_at.tv_nsec &&
	    now.tv_sec == budget->looked_at.tv_sec)
		return false;
	budget->looked_at = now;
	return true;
}

bool graft_budget_is_spent(struct graft_budget *budget)
{
	if (!budget->spent && has_ticked(budget))
		budget->spent = left_us(budget) <= 0;
	return budget->spent;
}

void graft_budget_extend(struct graft_budget *budget, int64_t cpu_ms, int64_t max_ms)
{
	int64_t most_us = max_ms * 1000 - budget->extended_us;
	int64_t more_us = cpu_ms * 1000 < most_us ? cpu_ms * 1000 : most_us;

	if (more_us <= 0)
		return;
	budget->extended_us += more_us;
	budget->limit_us += more_us;
}

void graft_budget_share(struct graft_budget *budget, int64_t used_ms, int64_t least_ms)
{
	int64_t most_us = budget->given_us - least_ms * 1000;

	if (!budget->shared && most_us > 0)
		budget->limit_us -= used_ms < most_us / 1000 ? used_ms * 1000 : most_us;
	budget->shared = true;
}

int64_t graft_budget_left_ms(struct graft_budget *budget)
{
	int64_t left = budget->spent ? 0 : left_us(budget);

	return left > 0 ? left / 1000 : 0;
}

void graft_budget_add_child(struct graft_budget *budget, const struct graft_budget_child *child)
{
	(void)graft_budget_end_child(budget);
	budget->child = *child;
	budget->parent = getpid();
	budget->child_us = -1;
	budget->children_us += child->allowed_ms * 1000;
}

const struct graft_budget_child *graft_budget_child(const struct graft_budget *budget)
{
	return budget->child.pid != 0 && budget->child.fd >= 0 && budget->parent == getpid() ? &budget->child : NULL;
}

int64_t graft_budget_wait_ms(struct graft_budget *budget, int64_t more_ms, int64_t max_ms)
{
	budget->waited_ms += more_ms;
	return budget->waited_ms < max_ms ? max_ms - budget->waited_ms : 0;
}

void graft_budget_dismiss_child(struct graft_budget *budget)
{
	if (budget->child.pid != 0 && budget->child.fd >= 0) {
		budget->child_us = time_of_process_us(budget->child.pid);
		(void)close(budget->child.fd);
	}
	budget->child.fd = -1;
}

/*
 * Waits until the killed child has ended, but not for a disk or server that never answers: then the
 * child cannot be reaped, and is left to the kernel. Returns like wait4(2). BASELINE: before Linux
 * 5.3 there is no pidfd.
 */
static pid_t reap_killed(pid_t pid, struct rusage *usage)
{
	struct pollfd pollfd = { .events = POLLIN };
	pid_t reaped = wait4(pid, NULL, WNOHANG, usage);
	int rc = 1;

	if (reaped != 0)
		return reaped;
	pollfd.fd = graft_pidfd_open(pid, 0);
	if (pollfd.fd >= 0) {
		do
			rc = poll(&pollfd, 1, REAP_WAIT_MS);
		while (rc < 0 && errno == EINTR);
		(void)close(pollfd.fd);
	}
	/* QUIRK: one that has ended cannot be reaped before its tracer, such as strace, has seen it. */
	do
		reaped = wait4(pid, NULL, rc == 0 ? WNOHANG : 0, usage);
	while (reaped < 0 && errno == EINTR);
	return reaped;
}

/*
 * Kills the child and returns what it used, or -1 if that is unknown. It had used `known_us` when
 * it was dismissed.
 */
static int64_t kill_and_reap(pid_t pid, int64_t known_us)
{
	struct rusage usage = { .ru_utime = { 0 } };
	int64_t taken_us;
	siginfo_t info;
	pid_t reaped;

	/*
	 * QUIRK: where SIGCHLD is ignored, children leave no zombie, and the PID may belong to
	 * another process by now.
	 */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return known_us;
	taken_us = time_of_process_us(pid);
	if (taken_us < 0)
		taken_us = known_us; /* it has ended meanwhile */
	(void)kill(pid, SIGKILL);
	reaped = reap_killed(pid, &usage);
	if (reaped == pid)
		return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
		       usage.ru_stime.tv_usec;
	return reaped < 0 ? taken_us : -1;
}

bool graft_budget_end_child(struct graft_budget *budget)
{
	struct graft_budget_child child;
	int64_t taken_us;

	graft_budget_dismiss_child(budget);
	child = budget->child;
	budget->child = (struct graft_budget_child){ .pid = 0 };
	if (child.pid == 0)
		return false;
	taken_us = kill_and_reap(child.pid, budget->child_us);
	if (taken_us < 0)
		return true;
	budget->children_us += taken_us - child.allowed_ms * 1000;
	return taken_us >= child.allowed_ms * 1000;
}

void graft_budget_become_child(struct graft_budget *budget, int64_t left_ms)
{
	budget->limit_us = own_time_us() + left_ms * 1000;
	budget->children_us = 0;
	graft_budget_dismiss_child(budget);
	budget->child = (struct graft_budget_child){ .pid = 0 };
	budget->spent = left_ms <= 0;
}
