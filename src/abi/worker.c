/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: a thread that may leave. setns(2) into a mount namespace is refused to a thread that shares its root and working directory with
 * others, and would take the whole process along; umask and file system ids are shared or per thread in the same way.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

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

/*
 * QUIRK: whether a process may be dumped and traced is not a thread's own, and the kernel says no as soon as one of them takes other file system ids. What
 * it was before the first of the workers that run now stands here, for the last one to restore: the mirror of a state that there is once in the process.
 */
static struct {
	pthread_mutex_t lock;
	unsigned int n_workers;
	int dumpable;
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void begin_work(void)
{
	(void)pthread_mutex_lock(&process.lock);
	if (process.n_workers++ == 0)
		process.dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	(void)pthread_mutex_unlock(&process.lock);
}

static void end_work(void)
{
	(void)pthread_mutex_lock(&process.lock);
	if (--process.n_workers == 0 && process.dumpable == 1)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)pthread_mutex_unlock(&process.lock);
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
	begin_work();
	status = pthread_create(&thread, NULL, work_apart, &work);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (status == 0)
		(void)pthread_join(thread, NULL);
	end_work();
	return status == 0 ? work.result : graft_fail_errno(err, status, "process creation failed");
}
