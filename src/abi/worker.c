/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: a thread that may leave. setns(2) into a mount namespace is refused to a thread that shares its root and working directory with
 * others, and would take the whole process along; umask and file system ids are shared or per thread in the same way.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "abi/abi.h"

struct work {
	int (*run)(void *arg, struct graft_error *err);
	void *arg;
	struct graft_error *err;
	int result;
};

static void *work_apart(void *arg)
{
	struct work *work = arg;

	if (unshare(CLONE_FS) < 0)
		work->result = graft_fail_errno(work->err, errno, "process confinement failed");
	else
		work->result = work->run(work->arg, work->err);
	return NULL;
}

int abi_run_apart(int (*run)(void *arg, struct graft_error *err), void *arg, struct graft_error *err)
{
	struct work work = { .run = run, .arg = arg, .err = err, .result = -1 };
	sigset_t all, old;
	pthread_t thread;
	int status;

	/* Signals are the program's own: its threads get them. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	status = pthread_create(&thread, NULL, work_apart, &work);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (status != 0)
		return graft_fail_errno(err, status, "process creation failed");
	(void)pthread_join(thread, NULL);
	return work.result;
}
