/* SPDX-License-Identifier: Apache-2.0 */
/* low_level: execve(2), with or without a process of its own. Knows nothing of what the program does. */
#include "cli/runtime/low_level.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STACK_SIZE ((size_t)16 << 10) /* of a child that calls a function of two system calls */
#define NOT_BEGUN  127                /* exit status of a child that is no other program yet */
#define BY_SIGNAL  128                /* and above: the status that shells give to an end by a signal */

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

int low_level_become(const char *path, char **argv, struct graft_arena *arena, struct graft_error *err)
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
	struct sigaction child_action; /* the caller's, of SIGCHLD */
	int sys;                       /* of an execve(2) that failed */
};

/* In our memory, while we wait. */
static int begin(void *arg)
{
	struct call *call = arg;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == call->parent &&
	    sigaction(SIGCHLD, &call->child_action, NULL) == 0)
		(void)execv(call->path, call->argv);
	call->sys = errno != 0 ? errno : ESRCH;
	_exit(NOT_BEGUN);
}

static void take_default(int signal_number, struct sigaction *ret_before)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };

	(void)sigaction(signal_number, &action, ret_before);
}

static int wait_for(pid_t pid, int *ret_status)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	*ret_status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	return 0;
}

int low_level_call(const char *path, char **argv, struct graft_arena *arena, int *ret_status, struct graft_error *err)
{
	static _Alignas(max_align_t) char stack[STACK_SIZE];
	struct call call = { .path = path, .argv = name_program(path, argv, arena, err), .parent = getpid() };
	pid_t pid;
	int rc;

	if (!call.argv)
		return -1;
	/* An engine that takes no notice of its children's end would take that of ours from us. The program has it as the engine left it. */
	take_default(SIGCHLD, &call.child_action);
	errno = 0;
	/* As vfork(2): a copy of our memory would cost more than all that is done in it. */
	pid = clone(begin, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, &call);
	if (pid < 0)
		return graft_fail_errno(err, errno, "could not start '%s'", path);
	rc = wait_for(pid, ret_status);
	if (rc == 0 && *ret_status == NOT_BEGUN && call.sys != 0)
		return fail_exec(path, call.sys, err);
	return rc < 0 ? graft_fail_errno(err, -rc, "could not wait for '%s'", path) : 0;
}

void low_level_end_alike(int status)
{
	if (status >= 0)
		exit(status);
	take_default(-status, NULL);
	(void)raise(-status);
	exit(BY_SIGNAL - status);
}
