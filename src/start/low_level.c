/* SPDX-License-Identifier: Apache-2.0 */
/*
 * low_level: execve(2), with or without a child process. Knows nothing about what the program does.
 */
#include "start/low_level.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STACK_SIZE ((size_t)16 << 10) /* for begin_call(), which makes a few system calls */
#define NOT_BEGUN  127                /* exit status of a child whose execve(2) failed */
#define BY_SIGNAL  128                /* added to a signal's number, as shells report it */

static char *const *name_program(const char *path, char **argv, struct graft_arena *arena, struct graft_error *err)
{
	static char empty[] = "";
	static char *const no_words[] = { empty, NULL };
	char *name = graft_arena_strdup(arena, path);

	if (!name) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	if (argv[0])
		argv[0] = name;
	return argv[0] ? argv : no_words;
}

static int fail_exec(const char *path, int sys, struct graft_error *err)
{
	return graft_fail_errno(err, sys, "could not exec '%s'", path);
}

int graft_low_level_become(const char *path, char **argv, struct graft_arena *arena, struct graft_error *err)
{
	char *const *words = name_program(path, argv, arena, err);

	if (!words)
		return -1;
	(void)execv(path, words);
	return fail_exec(path, errno, err);
}

struct call {
	const char *path;
	char *const *argv;
	pid_t parent;
	int sys; /* errno of a failed execve(2) */
};

/*
 * Signals that would end us but not the low-level runtime: runc catches them and continues with
 * `create`. The sender means the program that it started, so they are forwarded.
 */
static const int handed_on[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM };

/*
 * Signals are blocked from the first call until we exit, and waited for; the program gets our
 * caller's mask.
 */
static struct {
	bool waits;
	sigset_t ours; /* those waited for */
	sigset_t mask; /* the caller's mask */
	struct sigaction child_action;
} signals;

/* Runs in the child, which shares our memory while we are suspended. */
static int begin_call(void *arg)
{
	struct call *call = arg;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == call->parent &&
	    sigaction(SIGCHLD, &signals.child_action, NULL) == 0 && sigprocmask(SIG_SETMASK, &signals.mask, NULL) == 0)
		(void)execv(call->path, call->argv);
	call->sys = errno != 0 ? errno : ESRCH;
	_exit(NOT_BEGUN);
}

static void take_default(int signal_number, struct sigaction *ret_before)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };

	(void)sigaction(signal_number, &action, ret_before);
}

/*
 * SIGCHLD gets its default action: an engine that ignores it would make our child's status
 * unavailable.
 */
static void wait_for_signals(void)
{
	if (signals.waits)
		return;
	signals.waits = true;
	(void)sigemptyset(&signals.ours);
	(void)sigaddset(&signals.ours, SIGCHLD);
	for (size_t i = 0; i < GRAFT_COUNT(handed_on); i++)
		(void)sigaddset(&signals.ours, handed_on[i]);
	(void)sigprocmask(SIG_BLOCK, &signals.ours, &signals.mask);
	take_default(SIGCHLD, &signals.child_action);
}

static int wait_for_call(pid_t pid, int *ret_status)
{
	int status;

	for (;;) {
		pid_t ended = waitpid(pid, &status, WNOHANG);
		int signal_number;

		if (ended == pid)
			break;
		if (ended < 0)
			return -errno;
		signal_number = sigwaitinfo(&signals.ours, NULL);
		if (signal_number > 0 && signal_number != SIGCHLD)
			(void)kill(pid, signal_number);
	}
	*ret_status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	return 0;
}

int graft_low_level_call(const char *path, char **argv, struct graft_arena *arena, int *ret_status,
			 struct graft_error *err)
{
	static _Alignas(max_align_t) char stack[STACK_SIZE];
	struct call call = { .path = path, .argv = name_program(path, argv, arena, err), .parent = getpid() };
	pid_t pid;
	int rc;

	if (!call.argv)
		return -1;
	wait_for_signals();
	errno = 0;
	/* Like vfork(2): copying our memory would cost more than everything that the child does. */
	pid = clone(begin_call, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, &call);
	if (pid < 0)
		return graft_fail_errno(err, errno, "could not start '%s'", path);
	rc = wait_for_call(pid, ret_status);
	if (rc == 0 && *ret_status == NOT_BEGUN && call.sys != 0)
		return fail_exec(path, call.sys, err);
	return rc < 0 ? graft_fail_errno(err, -rc, "could not wait for '%s'", path) : 0;
}

void graft_low_level_end_alike(int status)
{
	sigset_t set;

	if (status >= 0)
		exit(status);
	take_default(-status, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, -status);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(-status);
	exit(BY_SIGNAL - status);
}
